import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderBlobs

/// A blob store that takes its lock again, after another store had the directory.
@Suite("A resumed blob store", .timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct BlobResumingTests {
  @Test func whatAnotherStoreHasDoneIsThere() async throws {
    let shelf = try await BlobShelf()
    for key in ["a", "b", "c", "d"] { try await shelf.blobs.save("old \(key)", for: key) }
    await shelf.blobs.suspend()
    let other = try await BlobShelf(on: shelf.files)
    try await other.blobs.save("new a", for: "a")
    try await other.blobs.remove("b")
    try await other.blobs.save("a long e", for: "e")
    #expect(await code { try await shelf.blobs.resume() } == .alreadyOpen)
    #expect(await code { try await shelf.blobs.resume() } == .alreadyOpen)
    #expect(try await shelf.blobs.blob(for: "a")?.data == Data("old a".utf8))
    try await other.close()
    try await shelf.blobs.resume()
    let blobs = shelf.blobs
    #expect(try await blobs.blob(for: "a")?.data == Data("new a".utf8))
    #expect(try await blobs.blob(for: "b") == nil)
    #expect(try await blobs.blob(for: "c")?.origin == .memory)
    #expect(try await blobs.blob(for: "e")?.origin == .disk)
    #expect(blobs.persistedKeys == ["a", "c", "d", "e"] && shelf.blobPaths.count == 4)
    #expect(await blobs.usage == .init(memoryCount: 4, memoryBytes: 23, diskCount: 4, diskBytes: 23))
    for key in ["a", "b", "c"] { try await blobs.save("newer", for: key) }
    for key in ["a", "b", "c"] { #expect(try await shelf.stored(key) == "newer") }
    #expect(shelf.blobPaths.count == 5 && shelf.reports.codes.isEmpty)
    try await shelf.close()
    let again = try await BlobShelf(on: shelf.files)
    #expect(again.blobs.openReport.isClean)
    try await again.close()
  }

  /// The file of an entry that this version cannot read is not one without an entry.
  @Test(arguments: [2, 1]) func anEntryThatCannotBeReadKeepsItsFile(_ version: Int) async throws {
    struct Entry: Codable, Identifiable { var id: String }
    let shelf = try await BlobShelf()
    try await shelf.blobs.save("a", for: "a")
    await shelf.blobs.suspend()
    let files = shelf.files
    let other = try await BlobShelf(on: files)
    try await other.blobs.save("b", for: "b")
    try await other.close()
    let paths = shelf.blobPaths
    let index = JSONFileBackend(file: BlobShelf.directory.appendingPathComponent("blob-index.json"), fileSystem: files)
    let steps: [Migration] = version == 2 ? [.init(from: 1) { _ in }] : []
    let entries = try await LocalRepository(
      backend: index, schema: RepositorySchema<Entry>("blobs", version: version, migrations: steps))
    try await entries.save(Entry(id: try BlobStore.id(of: "b")))
    try await entries.close()
    for _ in 0..<2 {
      #expect(await code { try await shelf.blobs.resume() } == (version == 2 ? .newerSchema : .decodingFailed))
      #expect(shelf.blobPaths == paths)
      #expect(try await shelf.blobs.blob(for: "a")?.data == Data("a".utf8))
    }
    try await shelf.close()
    #expect(shelf.blobPaths == paths)
  }

  /// What this store had read before, and what the other has read since, is kept longest.
  @Test func theOrderOfUseIsThatOfBoth() async throws {
    let shelf = try await BlobShelf(.init(memoryCount: 0, diskCount: 5))
    for key in ["a", "b", "c", "d"] { try await shelf.blobs.save("1", for: key) }
    _ = try await shelf.blobs.blob(for: "a")
    await shelf.blobs.suspend()
    let other = try await BlobShelf(on: shelf.files)
    _ = try await other.blobs.blob(for: "c")
    try await other.blobs.save("1", for: "e")
    try await other.close()
    try await shelf.blobs.resume()
    try await shelf.blobs.save("1", for: "f")
    #expect(shelf.blobs.persistedKeys == ["a", "c", "d", "e", "f"])
    try await shelf.blobs.save("1", for: "g")
    #expect(shelf.blobs.persistedKeys == ["a", "c", "e", "f", "g"])
    try await shelf.close()
    let again = try await BlobShelf(on: shelf.files, .init(diskCount: 2))
    #expect(again.blobs.persistedKeys == ["f", "g"])
    try await again.close()
  }

  @Test func theLimitsAreThisStoresAgain() async throws {
    let shelf = try await BlobShelf(.init(diskCount: 3))
    for key in ["a", "b", "c"] { try await shelf.blobs.save("1", for: key) }
    await shelf.blobs.suspend()
    let other = try await BlobShelf(on: shelf.files)
    for key in ["d", "e"] { try await other.blobs.save("1", for: key) }
    try await other.close()
    try await shelf.blobs.resume()
    #expect(shelf.blobs.persistedKeys == ["c", "d", "e"] && shelf.blobPaths.count == 3)
    #expect(try await shelf.blobs.blob(for: "a") == nil)
    try await shelf.close()
  }

  @Test func whatAnotherProcessHasLeftBehindGoes() async throws {
    let shelf = try await BlobShelf()
    try await shelf.blobs.save("A", for: "a")
    await shelf.blobs.suspend()
    for name in [try BlobStore.id(of: "b"), try BlobStore.id(of: "c") + "-7-tmp", "notes.txt"] {
      try shelf.files.place(Data("left".utf8), at: "/blobs/" + name)
    }
    try await shelf.blobs.resume()
    #expect(shelf.blobPaths == ["/blobs/" + (try BlobStore.id(of: "a")), "/blobs/notes.txt"])
    #expect(try await shelf.stored("a") == "A")
    try await shelf.close()
  }

  @Test func anotherIndexInThePlaceOfTheOldOneIsRefused() async throws {
    let shelf = try await BlobShelf()
    let blobs = shelf.blobs
    try await blobs.save("A", for: "a")
    await blobs.suspend()
    for path in shelf.files.paths where path.contains("blob-index.json") { try shelf.files.remove(path) }
    #expect(await code { try await blobs.resume() } == .dataMissing)
    let other = try await BlobShelf(on: shelf.files)
    try await other.blobs.save("B", for: "b")
    try await other.close()
    let paths = shelf.files.paths
    #expect(await code { try await blobs.resume() } == .dataMissing)
    #expect(try await blobs.blob(for: "a")?.origin == .memory)
    try await blobs.close()
    #expect(shelf.files.paths.filter { !$0.hasSuffix("-lock") } == paths.filter { !$0.hasSuffix("-lock") })
    let again = try await BlobShelf(on: shelf.files)
    #expect(try await again.stored("b") == "B")
    try await again.close()
  }

  /// Each call of resuming fails once: the store stays suspended or is resumed, a later call resumes it, and every blob is whole.
  @Test(arguments: [true, false])
  func everyCallOfResumingFailsOnce(hasChanged: Bool) async throws {
    for step in [FaultPlan.Step.operation, FaultPlan.Step.read] {
      var number = 1
      while try await resume(hasChanged: hasChanged, failing: step, number) { number += 1 }
      #expect(number > 1)
    }
  }

  /// - Returns: Whether there was a call of that number, which has failed.
  private func resume(hasChanged: Bool, failing step: (Int) -> FaultPlan.Step, _ number: Int) async throws -> Bool {
    let shelf = try await BlobShelf()
    let (blobs, files) = (shelf.blobs, shelf.files)
    for key in ["a", "b"] { try await blobs.save("old", for: key) }
    let writer = try await blobs.writer(for: "c")
    try await writer.write(Data("C".utf8))
    await blobs.suspend()
    if hasChanged {
      let other = try await BlobShelf(on: files)
      try await other.blobs.save("new", for: "a")
      try await other.blobs.remove("b")
      try await other.close()
    }
    func count() -> Int { step(0) == .read(0) ? files.readCount : files.operationCount }
    let last = count() + number
    files.fail(FaultPlan(step(last), code: .inputOutput))
    let failure = await code { try await blobs.resume() }
    let isHit = count() >= last
    files.fail()
    #expect(failure == nil || isHit && failure == .inputOutput, "\(step(number))")
    try await blobs.resume()
    let lost = await code { try await writer.finish() }
    #expect(hasChanged ? lost == .dataMissing || isHit && lost == .inputOutput : lost == nil, "\(step(number))")
    let expected = ["a": hasChanged ? "new" : "old", "b": hasChanged ? nil : "old", "c": lost == nil ? "C" : nil]
    for (key, text) in expected { #expect(try await blobs.blob(for: key)?.data == text.map { Data($0.utf8) }, "\(step(number))") }
    #expect(shelf.reports.codes.isEmpty)
    try await shelf.close()
    let again = try await BlobShelf(on: files)
    for (key, text) in expected { #expect(try await again.stored(key) == text, "\(step(number))") }
    #expect(again.blobs.openReport.missing.isEmpty && again.blobs.openReport.orphans.isEmpty)
    try await again.close()
    return isHit
  }

  // MARK: Writers

  @Test func aWriterGoesOnOrSaysThatItsFileIsGone() async throws {
    let shelf = try await BlobShelf()
    let blobs = shelf.blobs
    try await blobs.save("old", for: "a")
    let (begun, written) = (try await blobs.writer(for: "a"), try await blobs.writer(for: "a"))
    try await written.write(Data("lost".utf8))
    let empty = try await blobs.writer(for: "b")
    await blobs.suspend()
    let finish = Task { try await written.finish() }
    let other = try await BlobShelf(on: shelf.files)
    #expect(other.blobs.openReport.unfinished.count == 1)
    try await other.close()
    let third = try await blobs.writer(for: "c")
    let write = Task { try await third.write(Data("C".utf8)) }
    try await blobs.resume()
    #expect(await code(of: finish) == .dataMissing)
    #expect(await code { try await written.write(Data()) } == .dataMissing)
    #expect(try await shelf.stored("a") == "old")
    try await write.value
    try await third.finish()
    try await begun.write(Data("new".utf8))
    try await begun.finish()
    try await empty.finish()
    #expect(try await shelf.stored("a") == "new")
    #expect(try await shelf.stored("b") == "")
    #expect(try await shelf.stored("c") == "C")
    #expect(shelf.blobPaths.count == 3 && shelf.reports.codes.isEmpty)
    try await shelf.close()
  }

  /// A write that has synced its file and waits for its turn.
  @Test func aFileThatIsGoneIsNeverPublished() async throws {
    let shelf = try await BlobShelf()
    let blobs = shelf.blobs
    try await blobs.save("old", for: "a")
    let writer = try await blobs.writer(for: "a")
    try await writer.write(Data("new".utf8))
    let changes = await blobs.changes
    await changes.acquire()
    let finish = Task { try await writer.finish() }
    try await until { changes.waitingCount == 1 }
    let suspending = Task { await blobs.suspend() }
    try await until { changes.waitingCount == 2 }
    changes.release()
    await suspending.value
    let other = try await BlobShelf(on: shelf.files)
    try await other.blobs.save("other", for: "a")
    try await other.close()
    try await blobs.resume()
    #expect(await code(of: finish) == .dataMissing)
    #expect(try await shelf.stored("a") == "other")
    #expect(shelf.blobPaths.count == 1)
    try await shelf.close()
  }

  @Test func aRemovalEndsAWriteAlsoOverASuspension() async throws {
    let shelf = try await BlobShelf()
    let blobs = shelf.blobs
    let writer = try await blobs.writer(for: "a")
    try await writer.write(Data("A".utf8))
    await blobs.suspend()
    let remove = Task { try await blobs.remove("a") }
    try await blobs.resume()
    #expect(try await remove.value == false)
    #expect(await code { try await writer.finish() } == .cancelled)
    #expect(shelf.blobPaths.isEmpty)
    try await shelf.close()
  }
}
