import Foundation
import Larder
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderBlobs

@Suite("Writing a blob piece by piece", .timeLimit(.minutes(15)))
struct BlobWriterTests {
  private struct Interrupted: Error {}

  @Test func aSequenceOfChunksBecomesOneBlob() async throws {
    let shelf = try await BlobShelf()
    let chunks = AsyncStream<Data> { continuation in
      for number in 0..<100 { continuation.yield(Data(repeating: UInt8(number), count: 1000)) }
      continuation.finish()
    }
    try await shelf.blobs.save(chunks, for: "a")
    let expected = (0..<100).reduce(into: Data()) { $0 += Data(repeating: UInt8($1), count: 1000) }
    #expect(try await shelf.blobs.blob(for: "a")?.origin == .memory)
    shelf.blobs.removeFromMemory()
    #expect(try await shelf.blobs.blob(for: "a")?.data == expected)
  }

  @Test func aWriterWithoutAChunkMakesAnEmptyBlob() async throws {
    let shelf = try await BlobShelf()
    try await shelf.blobs.writer(for: "a").finish()
    #expect(try await shelf.stored("a") == "")
  }

  /// 40 MiB: what is kept of it for memory is let go at 16.
  @Test func aLargeBodyIsNotGatheredInMemory() async throws {
    let directory = try TemporaryDirectory()
    let blobs = try await BlobStore(directory: directory.url)
    let writer = try await blobs.writer(for: "a")
    let chunk = Data(repeating: 7, count: 4 << 20)
    for number in 1...10 {
      try await writer.write(chunk)
      #expect(await writer.keptByteCount == (number <= 4 ? number * chunk.count : 0))
    }
    try await writer.finish()
    #expect(try blobs.info(for: "a")?.size == 40 << 20)
    #expect(try await blobs.blob(for: "a")?.origin == .disk)
    try await blobs.close()
  }

  @Test func anInterruptedSequenceLeavesNothing() async throws {
    let shelf = try await BlobShelf()
    try await shelf.blobs.save("old", for: "a")
    let chunks = AsyncThrowingStream<Data, any Error> { continuation in
      continuation.yield(Data("new".utf8))
      continuation.finish(throwing: Interrupted())
    }
    await #expect(throws: Interrupted.self) { try await shelf.blobs.save(chunks, for: "a") }
    #expect(try await shelf.stored("a") == "old")
    #expect(shelf.blobPaths.count == 1)
  }

  @Test func anAbortedWriterLeavesNothingAndIsOver() async throws {
    let shelf = try await BlobShelf()
    let writer = try await shelf.blobs.writer(for: "a")
    try await writer.write(Data("A".utf8))
    #expect(shelf.blobPaths.count == 1)
    await writer.abort()
    #expect(shelf.blobPaths.isEmpty)
    await writer.abort()
    #expect(await code { try await writer.write(Data()) } == .closed)
    #expect(await code { try await writer.finish() } == .closed)
    #expect(try await shelf.stored("a") == nil)
  }

  @Test func aWriterThatIsDroppedLeavesNothing() async throws {
    let shelf = try await BlobShelf()
    var writer: BlobWriter? = try await shelf.blobs.writer(for: "a")
    try await writer?.write(Data("A".utf8))
    #expect(shelf.blobPaths.count == 1)
    writer = nil
    try await until { shelf.blobPaths.isEmpty }
  }

  @Test func aFinishedWriterIsOver() async throws {
    let shelf = try await BlobShelf()
    let writer = try await shelf.blobs.writer(for: "a")
    try await writer.write(Data("A".utf8))
    try await writer.finish()
    #expect(await code { try await writer.write(Data("B".utf8)) } == .closed)
    #expect(await code { try await writer.finish() } == .closed)
    await writer.abort()
    #expect(try await shelf.stored("a") == "A")
  }

  @Test func aBodyOverTheLimitIsGivenUpAtTheLimit() async throws {
    let shelf = try await BlobShelf(.init(diskBytes: 2500))
    let taken = Mutex(0)
    let chunks = AsyncStream<Data> {
      taken.withLock { $0 += 1 }; return Data(repeating: 1, count: 1000)
    }  // without end
    let blobs = shelf.blobs
    let failure = await code { try await blobs.save(chunks, for: "a") }
    #expect(failure == .tooLarge)
    #expect(taken.withLock { $0 } == 3)
    #expect(shelf.blobPaths.isEmpty)
  }

  @Test(arguments: [true, false])
  func whatWasBegunBeforeARemovalDoesNotComeBackAfterIt(clears: Bool) async throws {
    let shelf = try await BlobShelf()
    try await shelf.blobs.save("old", for: "a")
    let begun = try await shelf.blobs.writer(for: "a")
    let written = try await shelf.blobs.writer(for: "a")
    try await written.write(Data("new".utf8))
    if clears { try await shelf.blobs.clear() } else { try await shelf.blobs.remove("a") }
    #expect(await code { try await begun.write(Data("new".utf8)) } == .cancelled)
    #expect(await code { try await written.finish() } == .cancelled)
    #expect(try await shelf.blobs.blob(for: "a") == nil)
    #expect(shelf.blobPaths.isEmpty)
    // What begins later is not concerned, nor is another key.
    let other = try await shelf.blobs.writer(for: "b")
    try await shelf.blobs.remove("a")
    try await other.write(Data("B".utf8))
    try await other.finish()
    #expect(try await shelf.stored("b") == "B")
  }

  // MARK: A store that was closed

  @Test func aWriterOfAClosedStoreIsOverAndLeavesNothing() async throws {
    let shelf = try await BlobShelf()
    let begun = try await shelf.blobs.writer(for: "a")
    let written = try await shelf.blobs.writer(for: "b")
    try await written.write(Data("B".utf8))
    try await shelf.close()
    #expect(shelf.blobPaths.isEmpty)
    #expect(await code { try await begun.write(Data("A".utf8)) } == .closed)
    #expect(await code { try await begun.finish() } == .closed)
    #expect(await code { try await written.write(Data("B".utf8)) } == .closed)
    #expect(await code { try await written.finish() } == .closed)
    #expect(shelf.blobPaths.isEmpty)
    let again = try await BlobShelf(on: shelf.files)
    #expect(again.blobs.openReport.isClean)
  }

  /// The store before it has begun the same writes, so a number would be the same.
  @Test(arguments: ["write", "finish", "abort", "drop"])
  func aWriterOfAClosedStoreDestroysNoWriteOfItsSuccessor(action: String) async throws {
    let shelf = try await BlobShelf()
    var old: BlobWriter? = try await shelf.blobs.writer(for: "a")
    try await old?.write(Data("old".utf8))
    try await shelf.close()
    let next = try await BlobShelf(on: shelf.files)
    let new = try await next.blobs.writer(for: "a")
    try await new.write(Data("new".utf8))
    switch action {
    case "write": _ = await code { try await old?.write(Data("old".utf8)) }
    case "finish": _ = await code { try await old?.finish() }
    case "abort": await old?.abort()
    default:
      old = nil
      await shelf.blobs.index.executor.run {}
    }
    #expect(next.blobPaths.count == 1)
    try await new.finish()
    #expect(try await next.stored("a") == "new")
    _ = old
  }
}
