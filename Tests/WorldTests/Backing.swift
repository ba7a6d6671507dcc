import Foundation
import Larder
import LarderSQLite

/// A backend under test, with the names that its files have.
enum Backing: String, CaseIterable, Sendable {
  case json, sqlite

  /// The name of the main file.
  var fileName: String { self == .json ? "spots.json" : "spots.sqlite" }
  /// The ending of the journal or log.
  var log: String { self == .json ? "-journal" : "-wal" }
  /// The ways to open a store.
  var accesses: [StoreOptions.Access] { self == .json ? [.exclusive, .readOnly] : [.exclusive, .shared, .readOnly] }
  /// The ways to open a store for writing.
  var writers: [StoreOptions.Access] { accesses.filter { $0 != .readOnly } }

  func backend(_ file: URL) -> any StorageBackend { self == .json ? JSONFileBackend(file: file) : SQLiteBackend(file: file) }

  /// Opens the store, and collects the keys of its records.
  func open(_ file: URL, _ access: StoreOptions.Access = .exclusive) throws(RepositoryError) -> OpenedStore {
    let backend = backend(file)
    var keys: Set<String> = []
    let options = StoreOptions(access: access, lockTimeout: .milliseconds(20))
    let report = try backend.openAndRecover(options) { record in
      if record.value != nil { keys.insert("\(record.collection)/\(record.key.text)") }
    }
    return OpenedStore(backend: backend, report: report, keys: keys)
  }

  /// Returns the answer to opening a store, which is closed again.
  func answer(_ file: URL, _ access: StoreOptions.Access = .exclusive) -> Answer {
    do throws(RepositoryError) {
      let store = try open(file, access)
      try store.backend.close()
      return .everything(store.keys)
    } catch {
      return .refused(error.code)
    }
  }
}

/// A store that is open, with what was in it.
struct OpenedStore {
  let backend: any StorageBackend
  let report: OpenReport
  let keys: Set<String>

  /// Commits one record, whose key is the number of the commit.
  func save(_ commit: UInt64, in collection: String = "spots") throws(RepositoryError) {
    let record = StoredRecord(
      collection: collection, key: RecordKey("\(commit)"), revision: Revision(commit), schemaVersion: 1, value: Data("{\"n\":1}".utf8))
    _ = try backend.beginCommit(after: Revision(commit - 1), .durable)
    try backend.commit(WriteBatch(records: [record], commits: commit...commit))
  }

  /// Commits the next record.
  func saveNext() throws(RepositoryError) -> String {
    let commit = report.commit.number + 1
    try save(commit)
    return "spots/\(commit)"
  }
}

/// The one answer to a situation.
enum Answer: Equatable, CustomStringConvertible {
  /// The store opens, with exactly these records.
  case everything(Set<String>)
  /// The store is refused, and every file stays as it was.
  case refused(RepositoryError.Code)

  var description: String {
    switch self {
    case .everything(let keys): "everything \(keys.sorted())"
    case .refused(let code): "refused \(code)"
    }
  }
}
