import Foundation
import Larder
import LarderSQLite

/// The backends that are compared.
enum Backend: String, CaseIterable, Sendable {
  case json, sqlite, memory

  static let onDisk: [Backend] = [.json, .sqlite]

  func open(in directory: URL, _ options: StoreOptions = .init()) async throws -> LocalRepository<Spot> {
    try await open(in: directory, .init("spots"), options)
  }

  func open<Item>(
    in directory: URL, _ schema: RepositorySchema<Item>, _ options: StoreOptions = .init()
  ) async throws -> LocalRepository<Item> {
    let file = directory.appendingPathComponent("spots.\(rawValue)")
    return switch self {
    case .json: try await LocalRepository(jsonFile: file, schema: schema, options: options)
    case .sqlite: try await LocalRepository(sqliteFile: file, schema: schema, options: options)
    case .memory: try await LocalRepository(backend: InMemoryBackend(), schema: schema, options: options)
    }
  }
}

/// A directory of a scenario's own.
func withDirectory<R>(_ body: (URL) async throws -> R) async throws -> R {
  let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-bench-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: directory) }  // what stays is the system's to clean
  return try await body(directory)
}
