import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

/// A sync of the directory that has failed, after which no later one says that the names are durable.
@Suite("Names of a JSON store that may be lost")
struct LostNameTests {
  private let file = URL(fileURLWithPath: "/data/app/spots.json")
  private let files = SimulatedFileSystem()

  private func backend(_ files: any FileSystem) -> JSONFileBackend { JSONFileBackend(file: file, fileSystem: files) }

  private func batch(_ commit: UInt64) -> WriteBatch {
    let record = StoredRecord(
      collection: "spots", key: RecordKey("\(commit)"), revision: Revision(commit), schemaVersion: 1, value: Data("1".utf8))
    return WriteBatch(records: [record], commits: commit...commit)
  }

  /// Returns the keys that are there after a power cut that keeps nothing of what was not synced.
  private func keysAfterPowerLoss() throws -> [String] {
    var keys: [String] = []
    let backend = backend(files.crashImages(limit: 1)[0].fileSystem)
    _ = try backend.openAndRecover(StoreOptions()) { keys.append($0.key.text) }
    backend.abandon()
    return keys.sorted()
  }

  @Test func aStoreWhoseNewNameCouldNotBeSyncedIsMadeAnew() throws {
    let faulty = FaultyFileSystem(files)
    let first = backend(faulty)
    let report = try first.open(StoreOptions()) { _ in }
    faulty.script(.syncDirectory, "/data/app", Fault(EIO))
    #expect(throws: RepositoryError.self) { try first.recover(report) }
    first.abandon()
    let second = backend(faulty)
    _ = try second.openAndRecover(StoreOptions()) { _ in }
    try second.commit(batch(1))
    #expect(try keysAfterPowerLoss() == ["1"])
    second.abandon()
  }

  @Test func aMainFileWhoseNameCouldNotBeSyncedLosesNothingAfterReopening() throws {
    let faulty = FaultyFileSystem(files)
    let first = backend(faulty)
    _ = try first.openAndRecover(StoreOptions()) { _ in }
    try first.commit(batch(1))
    faulty.script(.syncDirectory, "/data/app", Fault(EIO))
    #expect(throws: RepositoryError.self) { try first.close() }
    let second = backend(faulty)
    _ = try second.openAndRecover(StoreOptions()) { _ in }
    try second.commit(batch(2))
    #expect(try keysAfterPowerLoss() == ["1", "2"])
    try second.checkpoint()
    try second.commit(batch(3))
    #expect(try keysAfterPowerLoss() == ["1", "2", "3"])
    try second.close()
    #expect(try keysAfterPowerLoss() == ["1", "2", "3"])
    #expect(files.paths == [file.path])
  }
}
