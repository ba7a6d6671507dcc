import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@Suite("Growth of a journal that may be lost", .timeLimit(.minutes(15))) struct LostGrowthTests {
  private let file = URL(fileURLWithPath: "/data/app/spots.json")
  private let files = SimulatedFileSystem()

  private func batch(_ commit: UInt64, size: Int) -> WriteBatch {
    let value = "\"" + String(repeating: "x", count: size) + "\""
    let record = StoredRecord(
      collection: "spots", key: RecordKey("\(commit)"), revision: Revision(commit), schemaVersion: 1, value: Data(value.utf8))
    return WriteBatch(records: [record], commits: commit...commit)
  }

  private func backend(_ files: any FileSystem) -> JSONFileBackend {
    JSONFileBackend(file: file, fileSystem: files, tuning: .init(journalChunk: 512))
  }

  /// The sync of a journal's growth fails, and the disk is full when the store is opened again: what the growth has left in the page cache
  /// alone must not hold the end of the next commit.
  @Test func aGrowthThatWasNotSyncedIsNotTrustedAfterReopening() throws {
    let commits = try commitAfterALostGrowth(refusing: ["spots.json-journal-tmp"])
    #expect(commits == ["1", "2"])
  }

  /// The same, and what the growth has left has no room either.
  @Test func aGrowthThatHasNoRoomIsGivenBack() throws {
    let commits = try commitAfterALostGrowth(refusing: ["spots.json-journal-tmp", "spots.json-journal"])
    #expect(commits == ["1", "2"])
  }

  /// Reopens a store whose journal's growth could not be synced, on a disk that refuses a write to some files, and makes a commit.
  ///
  /// - Returns: The keys of the commits that a power cut leaves.
  private func commitAfterALostGrowth(refusing names: [String]) throws -> [String] {
    let faulty = FaultyFileSystem(files)
    let first = backend(faulty)
    _ = try first.openAndRecover(StoreOptions()) { _ in }
    try first.commit(batch(1, size: 10))
    faulty.script(.sync, "spots.json-journal-tmp", Fault(EIO))
    #expect(throws: RepositoryError.self) { try first.commit(batch(2, size: 9_000)) }
    first.abandon()
    for name in names { faulty.script(.write, name, Fault(ENOSPC)) }
    let second = backend(faulty)
    _ = try second.openAndRecover(StoreOptions()) { _ in }
    #expect(faulty.scriptedHits == 1 + names.count)
    try second.commit(batch(2, size: 9_000))
    var keys: [String] = []
    let lost = backend(files.crashImages(limit: 1)[0].fileSystem)
    _ = try lost.openAndRecover(StoreOptions()) { keys.append($0.key.text) }
    lost.abandon()
    second.abandon()
    return keys.sorted()
  }

  /// A large frame was torn, and the disk has no room for the rest of it: a power cut while that is given back leaves no beginning of a
  /// frame at the end of the file, which would be damage.
  @Test func aTornFrameIsTakenBackBeforeTheJournalIsCut() throws {
    let journal = file.path + "-journal"
    let writer = backend(files)
    _ = try writer.openAndRecover(StoreOptions()) { _ in }
    try writer.commit(batch(1, size: 10))
    let before = try #require(files.contents(of: journal))
    try writer.commit(batch(2, size: 9_000))
    let after = try #require(files.contents(of: journal))
    writer.abandon()
    let start = try #require(zip(before, after).enumerated().first { $1.0 != $1.1 }?.offset)
    try files.place(before.prefix(start) + after[start..<(start + 1_000)] + Data(count: after.count - start - 1_000), at: journal)

    let result = try CrashExplorer(seed: 1, imagesPerPoint: 50).explore(from: { files.copy() }) { (system, promise: (Int) -> Void) in
      guard let system = system as? SimulatedFileSystem else { return }
      let faulty = FaultyFileSystem(system)
      faulty.script(.write, "spots.json-journal-tmp", Fault(ENOSPC))
      faulty.script(.write, "spots.json-journal", Fault(ENOSPC))
      let reopened = backend(faulty)
      defer { reopened.abandon() }
      _ = try reopened.openAndRecover(StoreOptions()) { _ in }
      promise(faulty.scriptedHits)
    } check: { image, hits in
      let reader = backend(image.fileSystem)
      defer { reader.abandon() }
      let report = try reader.openAndRecover(StoreOptions()) { _ in }
      guard report.commit.number == 1, hits.allSatisfy({ $0 == 2 }) else { throw RepositoryError(.corrupted, "\(report), \(hits)") }
    }
    #expect(result.images > 20)
  }
}
