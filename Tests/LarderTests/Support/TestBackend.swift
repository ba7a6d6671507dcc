import Foundation
import Larder
import LarderSQLite
import LarderTesting
import Testing

/// The kinds of backend that tests run on.
enum TestBackend: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case memory, json, sqlite, log

  /// Those that keep their records in files.
  static let onDisk = allCases.filter { $0 != .memory }

  var testDescription: String { rawValue }

  var factory: BackendFactory {
    switch self {
    case .memory:
      BackendFactory(capabilities: [.paging]) {
        let backend = InMemoryBackend()
        return BackendPlace { backend }
      }
    case .sqlite: .file(named: "store.sqlite", capabilities: [.backup, .handles, .sharing, .paging]) { backend($0) }
    case .json: .file(named: "store.json", capabilities: [.backup, .handles, .paging]) { backend($0) }
    case .log: .file(named: "store.\(rawValue)") { backend($0) }
    }
  }

  /// A backend on a file; memory has none.
  func backend(_ file: URL) -> any StorageBackend {
    switch self {
    case .memory: InMemoryBackend()
    case .json: JSONFileBackend(file: file)
    case .sqlite: SQLiteBackend(file: file)
    case .log: LogBackend(file: file)
    }
  }
}
