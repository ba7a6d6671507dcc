import Foundation
import Larder
import LarderSQLite
import LarderToolKit
import Testing

/// A directory for one test, removed with it.
final class Workspace: Sendable {
  let directory: URL

  init() throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "larder-tool-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  }

  deinit {
    do { try FileManager.default.removeItem(at: directory) } catch { Issue.record(error) }
  }

  func url(_ name: String) -> URL { directory.appending(path: name) }
  func path(_ name: String) -> String { url(name).path }

  /// Makes a store with three spots, one of them deleted, and returns its path.
  func store(_ kind: StoreKind) async throws -> String {
    let file = try StoreFile(newAt: path("spots.\(kind.rawValue)"))
    let store = try await Store.open(file.backend)
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    try await spots.save(Spot(id: "jogashima", name: "Jogashima pier", country: "JP", rating: 5, tags: ["pier", "rock"]))
    try await spots.save(Spot(id: "brest", name: "Brest", country: "FR", rating: 3, tags: []))
    try await spots.save(Spot(id: "gone", name: "Gone", country: "FR", rating: 1, tags: []))
    try await spots.delete("gone")
    try await store.close()
    return file.path
  }

  /// Makes a store whose only record was deleted and whose tombstone was forgotten, at commit 2 with the horizon there; returns its path.
  func emptiedStore(_ kind: StoreKind) async throws -> String {
    let file = try StoreFile(newAt: path("emptied.\(kind.rawValue)"))
    let store = try await Store.open(file.backend, options: StoreOptions(limits: .init(tombstones: 0)))
    let spots = try await store.repository(RepositorySchema<Spot>("spots"))
    try await spots.save(Spot(id: "gone", name: "Gone", rating: 1, tags: []))
    try await spots.delete("gone")
    try await store.checkpoint()
    try await store.close()
    return file.path
  }
}

/// A record of the test stores.
struct Spot: Codable, Identifiable, Sendable, Equatable {
  let id: String
  var name: String
  var country: String?
  var rating: Int
  var tags: [String]
}
