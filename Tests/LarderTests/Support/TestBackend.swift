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
      BackendFactory(capabilities: []) {
        let backend = InMemoryBackend()
        return BackendPlace { backend }
      }
    case .json: .file(named: "store.json") { JSONFileBackend(file: $0) }
    case .sqlite: .file(named: "store.sqlite") { SQLiteBackend(file: $0) }
    case .log: .file(named: "store.log") { LogBackend(file: $0) }
    }
  }
}
