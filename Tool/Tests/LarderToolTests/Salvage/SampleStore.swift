import Foundation
import Larder
import LarderTesting
import LarderToolKit
import Testing

/// A store with random commits, in the state of a crash or of a clean close, and everything that was ever written to it.
struct SampleStore {
  let file: StoreFile
  /// Every record and tombstone that was written, the later ones of an address behind the earlier ones.
  private(set) var history: [StoredRecord] = []
  let commit: UInt64

  /// The endings of the files that hold the store.
  static let endings = ["", "-journal", "-wal"]

  /// Makes a store of some collections; values hold their key and revision, so that they can be found in the files.
  init(
    _ kind: StoreKind, in workspace: Workspace, named name: String = "sample", commits: Int = 40, isClosed: Bool,
    _ random: inout SeededGenerator
  ) throws {
    file = try StoreFile(newAt: workspace.path("\(name).\(kind.rawValue)"), kind: kind)
    let live = try StoreFile(newAt: workspace.path("\(name)-live.\(kind.rawValue)"), kind: kind)
    let backend = live.backend
    _ = try backend.recover(backend.open(StoreOptions()) { _ in })
    let foldedAt = Int.random(in: 1...commits, using: &random)
    for commit in 1...commits {
      var records: [StoredRecord] = []
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let number = Int.random(in: 0..<60, using: &random)
        let collection = ["boats", "spots"][number % 2]
        let text = String(
          repeating: "x", count: Int.random(in: 0..<10, using: &random) == 0 ? 3_000 : Int.random(in: 0..<200, using: &random))
        let value = #"{"id":"key \#(number)","mark":"<\#(number):\#(commit)>","text":"\#(text)"}"#
        let isDeleted = Int.random(in: 0..<5, using: &random) == 0
        records.append(
          StoredRecord(
            collection: collection, key: RecordKey("key \(number)"), revision: Revision(UInt64(commit)), schemaVersion: 1 + number % 3,
            value: isDeleted ? nil : Data(value.utf8)))
      }
      // A batch keeps the last write of an address.
      var seen: Set<RecordAddress> = []
      records = records.reversed().filter { seen.insert($0.address).inserted }
      history += records
      try backend.commit(WriteBatch(records: records, commits: UInt64(commit)...UInt64(commit)))
      if commit == foldedAt { try backend.checkpoint() }
    }
    commit = UInt64(commits)
    if isClosed { try backend.close() }
    for ending in Self.endings where FileManager.default.fileExists(atPath: live.path + ending) {
      try FileManager.default.copyItem(atPath: live.path + ending, toPath: file.path + ending)
    }
    if !isClosed { try backend.close() }
  }

  /// The records and tombstones that the store holds.
  var newest: [RecordAddress: StoredRecord] { Dictionary(history.map { ($0.address, $0) }) { $1 } }

  /// Returns the bytes of the files, by the endings of their names.
  func bytes() throws -> [String: [UInt8]] {
    var found: [String: [UInt8]] = [:]
    for ending in Self.endings where FileManager.default.fileExists(atPath: file.path + ending) {
      found[ending] = [UInt8](try Data(contentsOf: URL(filePath: file.path + ending)))
    }
    return found
  }

  func write(_ bytes: [UInt8], _ ending: String) throws { try Data(bytes).write(to: URL(filePath: file.path + ending)) }
}

extension StoredRecord {
  /// Whether everything of the record is as in another one.
  func equals(_ other: StoredRecord) -> Bool {
    address == other.address && revision == other.revision && schemaVersion == other.schemaVersion && value == other.value
  }
}
