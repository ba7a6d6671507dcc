import Foundation
import Larder
import LarderTesting
import Testing

/// The kinds of backend that tests run on.
enum TestBackend: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case memory, log

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
    case .log: .file(named: "store.log") { LogBackend(file: $0) }
    }
  }
}
