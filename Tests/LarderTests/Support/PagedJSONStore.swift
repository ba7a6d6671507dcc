import Foundation
import LarderTesting
import Synchronization
import TestSupport

@testable import Larder

/// A JSON store that leaves its records in the files, on a simulated disk.
struct PagedJSONStore {
  static let file = URL(fileURLWithPath: "/data/spots.json")
  static let index = file.path + "-index"
  static let options = StoreOptions(durability: .buffered, checkpoint: .manual, residency: .onDisk(cache: .bytes(0)))

  let files = SimulatedFileSystem()
  private(set) var model: [String: String] = [:]

  /// Makes a store whose document has some blocks, and whose journal has later changes.
  init(_ count: Int = 400, journaled: Int = 20) throws {
    let backend = Self.backend(files)
    _ = try backend.openPagedAndRecover(Self.options)
    var commit: UInt64 = 0
    var values: [(String, String?)] =
      (0..<count).map { ("key \(1_000 + $0)", Self.value($0, "as it was")) } + [("gone", "{}"), ("gone", nil)]
    for number in 0..<journaled {
      values.append(("key \(1_000 + number * 7)", number.isMultiple(of: 4) ? nil : Self.value(number, "journaled")))
    }
    for (position, (key, value)) in values.enumerated() {
      commit += 1
      model[key] = value
      try backend.commit(Self.batch([Self.record(key, value, commit)], commit, count: model.count))
      if position == count + 1 { try backend.checkpoint() }
    }
    try backend.flush()
    backend.abandon()
  }

  static func value(_ number: Int, _ note: String) -> String {
    #"{"name":"spot \#(number)","note":"\#(note) \#(String(repeating: "x", count: 150))"}"#
  }

  static func record(_ key: String, _ value: String?, _ commit: UInt64) -> StoredRecord {
    StoredRecord(
      collection: "spots", key: RecordKey(key), revision: Revision(commit), schemaVersion: 1, value: value.map { Data($0.utf8) })
  }

  static func batch(_ records: [StoredRecord], _ commit: UInt64, count: Int?) -> WriteBatch {
    WriteBatch(records: records, commits: commit...commit, durability: .buffered, recordCounts: count.map { ["spots": $0] } ?? [:])
  }

  static func backend(_ files: any FileSystem, _ tuning: JSONFileBackend.Tuning = .init(smallFile: 0)) -> JSONFileBackend {
    JSONFileBackend(file: file, fileSystem: files, tuning: tuning)
  }

  /// Opens a store without its records, and reads all of them.
  static func read(_ files: SimulatedFileSystem) throws -> (opening: PagedOpening, values: [String: String]) {
    let backend = Self.backend(files)
    defer { backend.abandon() }
    let opening = try backend.openPagedAndRecover(Self.options)
    return (opening, try backend.keepBase().values())
  }
}

extension JSONFileBackend {
  /// Opens and recovers a store without its records.
  func openPagedAndRecover(_ options: StoreOptions) throws -> PagedOpening {
    let opening = try openPaged(options) { _ in }
    _ = try recover(opening.report)
    return opening
  }
}

extension StoredBase {
  /// The values of the collection "spots", by key.
  func values() throws -> [String: String] {
    var values: [String: String] = [:]
    var last: RecordKey?
    while case let records = try records(of: "spots", after: last, limit: 50), let end = records.last?.key {
      for record in records { values[record.key.text] = record.value.map { String(decoding: $0, as: UTF8.self) } }
      last = end
    }
    return values
  }
}

/// A file system that counts the bytes that are read from the document.
final class ReadCounting: ForwardingFileSystem {
  let base: any FileSystem
  private let count = Mutex(0)

  init(_ base: any FileSystem) { self.base = base }

  var documentBytes: Int { count.withLock { $0 } }

  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    guard let file = try base.open(path, writable: writable) else { return nil }
    return path.hasSuffix(".json") ? File(base: file, self) : file
  }
  func create(_ path: String) throws(RepositoryError) -> any OpenFile { try base.create(path) }

  private final class File: ForwardingFile {
    let base: any OpenFile
    private let files: ReadCounting

    init(base: any OpenFile, _ files: ReadCounting) { (self.base, self.files) = (base, files) }

    func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
      let data = try base.read(at: offset, count: count)
      files.count.withLock { $0 += data.count }
      return data
    }
  }
}
