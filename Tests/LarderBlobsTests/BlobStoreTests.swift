import Dispatch
import Foundation
import Larder
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderBlobs

@Suite("A blob store", .timeLimit(.minutes(15)))
struct BlobStoreTests {
  @Test func aBlobComesFromMemoryThenFromDiskThenNotAtAll() async throws {
    let shelf = try await BlobShelf()
    #expect(try await shelf.blobs.blob(for: "a") == nil)
    try await shelf.blobs.save("A", for: "a")
    #expect(try await shelf.blobs.blob(for: "a")?.origin == .memory)
    shelf.blobs.removeFromMemory()
    let read = try #require(await shelf.blobs.blob(for: "a"))
    #expect(read.origin == .disk && read.data == Data("A".utf8))
    #expect(try await shelf.blobs.blob(for: "a")?.origin == .memory)
    #expect(try await shelf.blobs.remove("a"))
    #expect(try await shelf.blobs.remove("a") == false)
    #expect(try await shelf.blobs.blob(for: "a") == nil)
  }

  @Test func blobsOutliveTheStore() async throws {
    let directory = try TemporaryDirectory()
    let first = try await BlobStore(directory: directory.url)
    try await first.save("A", for: "a")
    try await first.save(Data(), for: "empty")
    try await first.close()
    let second = try await BlobStore(directory: directory.url)
    #expect(second.openReport.isClean && second.persistedKeys == ["a", "empty"])
    let read = try #require(await second.blob(for: "a"))
    #expect(read.data == Data("A".utf8) && read.origin == .disk)
    #expect(abs(read.storedAt.timeIntervalSinceNow) < 600)
    #expect(try await second.blob(for: "empty")?.data == Data())
    #expect(try second.info(for: "a")?.size == 1)
    try await second.close()
  }

  @Test func aFileIsNamedByTheHashOfItsKeyAndNothingElse() async throws {
    let shelf = try await BlobShelf()
    try await shelf.blobs.save("A", for: "abc")
    #expect(shelf.blobPaths == ["/blobs/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"])
    #expect(shelf.files.contents(of: shelf.blobPaths[0]) == Data("A".utf8))
    #expect(shelf.files.mode(of: shelf.blobPaths[0]) == 0o600)
  }

  /// Paths, parts of paths, nothing, and what Swift takes for equal though its bytes differ.
  @Test func aKeyIsNeverAPath() async throws {
    let keys = [
      "../../etc/passwd", "/etc/passwd", "a/b", "", ".", "..", "a\0b", "blob-index.json", "blob-index.json-lock", "caf\u{E9}",
      "cafe\u{301}",
      String(repeating: "k", count: 64 << 10),
    ]
    let shelf = try await BlobShelf()
    for (number, key) in keys.enumerated() { try await shelf.blobs.save("\(number)", for: key) }
    for (number, key) in keys.enumerated() { #expect(try await shelf.stored(key) == "\(number)") }
    #expect(shelf.blobs.persistedKeys.count == keys.count)
    #expect(shelf.blobPaths.count == keys.count)
    for path in shelf.blobPaths { #expect(path.wholeMatch(of: /\/blobs\/[0-9a-f]{64}/) != nil) }
    let blobs = shelf.blobs
    #expect(await code { try await blobs.save("x", for: String(repeating: "k", count: (64 << 10) + 1)) } == .invalidKey)
  }

  @Test func aNewBlobTakesThePlaceOfTheOldOneAndItsFileGoes() async throws {
    let shelf = try await BlobShelf()
    for text in ["one", "two", "three"] {
      try await shelf.blobs.save(text, for: "a")
      #expect(try await shelf.stored("a") == text)
      #expect(shelf.blobPaths.count == 1)
    }
    #expect(await shelf.blobs.usage == .init(memoryCount: 1, memoryBytes: 5, diskCount: 1, diskBytes: 5))
  }

  @Test func clearEmptiesMemoryAndDisk() async throws {
    let shelf = try await BlobShelf()
    for key in ["a", "b", "c"] { try await shelf.blobs.save("A", for: key) }
    try await shelf.blobs.clear()
    #expect(try await shelf.blobs.blob(for: "a") == nil)
    #expect(shelf.blobPaths.isEmpty && shelf.blobs.persistedKeys.isEmpty)
    #expect(await shelf.blobs.usage == .init())
    try await shelf.close()
    let again = try await BlobShelf(on: shelf.files)
    #expect(try await again.stored("a") == nil)
    #expect(again.blobs.openReport.isClean)
  }

  // MARK: Limits

  @Test func theDefaultLimitsAreTheDocumentedOnes() {
    let limits = BlobStore.Limits()
    #expect(limits.memoryCount == 200 && limits.memoryBytes == 50_000_000)
    #expect(limits.diskCount == 10_000 && limits.diskBytes == 500_000_000)
  }

  @Test func memoryHoldsWhatWasUsedLastWithinBothLimits() async throws {
    let shelf = try await BlobShelf(.init(memoryCount: 2, memoryBytes: 10))
    for key in ["a", "b", "c"] { try await shelf.blobs.save("12", for: key) }
    #expect(await shelf.blobs.usage.memoryCount == 2)
    #expect(try await shelf.blobs.blob(for: "b")?.origin == .memory)
    #expect(try await shelf.blobs.blob(for: "a")?.origin == .disk)  // in the place of "c", which was used before "b"
    #expect(try await shelf.blobs.blob(for: "c")?.origin == .disk)
    try await shelf.blobs.save("123456789", for: "large")
    #expect(await shelf.blobs.usage.memoryBytes == 9)
    try await shelf.blobs.save("12345678901", for: "larger")
    #expect(try await shelf.blobs.blob(for: "larger")?.origin == .disk)
    #expect(try await shelf.blobs.blob(for: "larger")?.origin == .disk)
    #expect(try await shelf.blobs.blob(for: "large")?.origin == .memory)
  }

  @Test func theDiskHoldsWhatWasUsedLastWithinItsCount() async throws {
    let shelf = try await BlobShelf(.init(diskCount: 3))
    for key in ["a", "b", "c"] { try await shelf.blobs.save("1", for: key) }
    _ = try await shelf.blobs.blob(for: "a")  // from memory, and it counts
    try await shelf.blobs.save("1", for: "d")
    #expect(shelf.blobs.persistedKeys == ["a", "c", "d"])
    _ = try await shelf.stored("a")  // from disk, and it counts
    try await shelf.blobs.save("1", for: "e")
    try await shelf.blobs.save("2", for: "d")  // already there: nobody has to go
    #expect(shelf.blobs.persistedKeys == ["a", "d", "e"])
    #expect(shelf.blobPaths.count == 3)
    #expect(try await shelf.blobs.blob(for: "b") == nil)
  }

  @Test func theDiskHoldsWhatWasUsedLastWithinItsBytes() async throws {
    let shelf = try await BlobShelf(.init(diskBytes: 10))
    for key in ["a", "b", "c"] { try await shelf.blobs.save("123", for: key) }
    try await shelf.blobs.save("12345", for: "d")
    #expect(shelf.blobs.persistedKeys == ["c", "d"])
    try await shelf.blobs.save("1234567890", for: "c")
    #expect(shelf.blobs.persistedKeys == ["c"])
    let blobs = shelf.blobs
    #expect(await code { try await blobs.save("12345678901", for: "e") } == .tooLarge)
    #expect(try await shelf.stored("c") == "1234567890")
    #expect(shelf.blobPaths.count == 1)
  }

  @Test func theOrderOfUseOutlivesTheStoreAndLowerLimitsHoldAtOpen() async throws {
    let shelf = try await BlobShelf()
    for key in ["a", "b", "c", "d"] { try await shelf.blobs.save("1", for: key) }
    _ = try await shelf.blobs.blob(for: "a")
    try await shelf.close()
    let again = try await BlobShelf(on: shelf.files, .init(diskCount: 2))
    #expect(again.blobs.persistedKeys == ["a", "d"])
    #expect(again.blobPaths.count == 2)
    try await again.close()
  }

  // MARK: Who works where and when

  @Test func diskWorkRunsOnTheStoresOwnExecutor() async throws {
    let key = DispatchSpecificKey<Bool>()
    let isWatching = Flag()
    let elsewhere = Mutex<[String]>([])
    let files = SimulatedFileSystem()
    let look: WatchedFiles.Look = { (operation, path) throws(RepositoryError) in
      if isWatching.isSet, DispatchQueue.getSpecific(key: key) == nil { elsewhere.withLock { $0.append("\(operation) \(path)") } }
    }
    let watched = WatchedFiles(base: files, look: look)
    let shelf = try await BlobShelf(on: files, through: watched, .init(diskCount: 2))
    shelf.blobs.index.executor.queue.setSpecific(key: key, value: true)
    isWatching.set()
    for key in ["a", "b", "c"] { try await shelf.blobs.save("A", for: key) }
    _ = try await shelf.stored("c")
    let writer = try await shelf.blobs.writer(for: "d")
    try await writer.write(Data("D".utf8))
    await writer.abort()
    try await shelf.blobs.remove("b")
    try await shelf.blobs.clear()
    try await shelf.close()
    #expect(elsewhere.withLock { $0 } == [])
  }

  @Test func aReadFromMemoryDoesNotWaitForTheDisk() async throws {
    let files = SimulatedFileSystem()
    let gate = DispatchSemaphore(value: 0)
    let (isHolding, isHeld) = (Flag(), Flag())
    let look: WatchedFiles.Look = { (operation, path) throws(RepositoryError) in
      guard isHolding.isSet, operation == "sync", path.hasSuffix("-tmp"), !path.contains("index") else { return }
      isHeld.set()
      gate.wait()
    }
    let watched = WatchedFiles(base: files, look: look)
    let shelf = try await BlobShelf(on: files, through: watched)
    try await shelf.blobs.save("A", for: "a")
    isHolding.set()
    let blobs = shelf.blobs
    let writing = Task { try await blobs.save("B", for: "b") }
    try await until { isHeld.isSet }
    #expect(try await blobs.blob(for: "a")?.origin == .memory)
    gate.signal()
    try await writing.value
  }

  /// Every read gets one of the values whole; a write may meet the removal of its key.
  @Test func manyTasksCanUseOneKeyAtATime() async throws {
    let shelf = try await BlobShelf(.init(memoryCount: 1, diskCount: 2))
    let blobs = shelf.blobs
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<40 {
        group.addTask {
          let key = number % 4 == 0 ? "b" : "a"
          let failure = await code { try await blobs.save(String(repeating: "\(number % 10)", count: 1000), for: key) }
          #expect(failure == nil || failure == .cancelled && key == "b")
        }
        group.addTask {
          blobs.removeFromMemory()
          guard let data = try await blobs.blob(for: "a")?.data else { return }
          #expect(data.count == 1000 && Set(data).count == 1)
        }
        if number % 8 == 0 { group.addTask { try await blobs.remove("b") } }
      }
      try await group.waitForAll()
    }
    #expect(shelf.reports.codes.isEmpty)
    try await blobs.save("last", for: "a")
    #expect(try await shelf.stored("a") == "last")
    #expect(shelf.blobPaths.count == blobs.persistedKeys.count)
  }

  @Test func aCancelledWriteStoresNothing() async throws {
    let shelf = try await BlobShelf()
    let blobs = shelf.blobs
    try await blobs.save("old", for: "a")
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await blobs.save("new", for: "a")
    }
    #expect(await code(of: task) == .cancelled)
    #expect(try await shelf.stored("a") == "old")
    #expect(shelf.blobPaths.count == 1)
  }

  @Test func aClosedStoreRefusesAndAnOpenOneIsNotOpenedTwice() async throws {
    let directory = try TemporaryDirectory()
    let blobs = try await BlobStore(directory: directory.url)
    #expect(await code { _ = try await BlobStore(directory: directory.url) } == .alreadyOpen)
    try await blobs.save("A", for: "a")
    try await blobs.close()
    try await blobs.close()
    #expect(await code { try await blobs.save("B", for: "b") } == .closed)
    #expect(await code { _ = try await blobs.blob(for: "a") } == .closed)
    #expect(await code { try await blobs.clear() } == .closed)
    #expect(try directory.names == [BlobFiles.index, BlobStore.id(of: "a")])
  }
}
