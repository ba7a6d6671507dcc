import Foundation
import LarderTesting
import Testing

@testable import Larder

/// Power cuts and kills while a JSON store is copied.
@Suite("Crashes beside a backup of a JSON store", .timeLimit(.minutes(15))) struct JSONFileBackupTests {
  private let file = URL(fileURLWithPath: "/data/spots.json")
  private let copy = URL(fileURLWithPath: "/data/copies/spots.json")

  private func save(_ commit: UInt64, on backend: JSONFileBackend) throws {
    let record = StoredRecord(
      collection: "spots", key: RecordKey("key \(commit)"), revision: Revision(commit), schemaVersion: 1, value: Data("{}".utf8))
    try backend.commit(WriteBatch(records: [record], commits: commit...commit))
  }

  @Test func aCopyIsWholeOrAbsentAndThereOnceItWasAcknowledged() throws {
    let files = SimulatedFileSystem()
    let store = JSONFileBackend(file: file, fileSystem: files)
    _ = try store.openAndRecover(.init()) { _ in }
    for commit: UInt64 in 1...3 { try save(commit, on: store) }
    try store.close()
    let result = try CrashExplorer(seed: 1, imagesPerPoint: 40).explore(from: { files.copy() }) { (system, promise: (String) -> Void) in
      let store = JSONFileBackend(file: file, fileSystem: system)
      defer { store.abandon() }
      _ = try store.openAndRecover(.init()) { _ in }
      try store.backup(to: copy)
      promise("copied")
    } check: { image, promises in
      for path in [file, copy] where path == file || !promises.isEmpty || image.fileSystem.contents(of: path.path) != nil {
        let store = JSONFileBackend(file: path, fileSystem: image.fileSystem)
        defer { store.abandon() }
        let report = try store.openAndRecover(.init()) { _ in }
        try CrashWorkload.expect(report.commit.number == 3, "\(path.path), \(promises): \(report)")
      }
    }
    #expect(result.images > 60)
  }
}
