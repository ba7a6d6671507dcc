import Foundation
import Larder
import LarderToolKit
import Testing

/// A backup and a store of different kinds.
@Suite(.timeLimit(.minutes(15))) struct StoreKindTests {
  /// Two names of one kind each, the second one that of the other kind.
  private static let pairs: [(kind: StoreKind, other: StoreKind)] = [(.jsonFile, .sqliteFile), (.sqliteFile, .jsonFile)]

  /// Makes a backup of one kind, and returns its path.
  private func backup(_ kind: StoreKind, _ workspace: Workspace) async throws -> String {
    let (store, backup) = (try await workspace.store(kind), workspace.path("backup.\(kind.rawValue)"))
    #expect(try await larder("backup", store, "--to", backup).code == 0)
    try FileManager.default.removeItem(atPath: store)
    return backup
  }

  @Test(arguments: pairs) func `a backup of the other kind is not put in the place of a store`(kind: StoreKind, other: StoreKind)
    async throws
  {
    let workspace = try Workspace()
    let backup = try await backup(kind, workspace)
    let store = try await workspace.store(other)
    let before = try Data(contentsOf: URL(filePath: store))
    // The bytes of a store say its kind, also under a name that says another.
    let misnamed = workspace.path("misnamed.\(kind.rawValue)")
    try FileManager.default.copyItem(atPath: store, toPath: misnamed)
    for target in [store, misnamed] {
      let run = try await larder("restore", backup, "--to", target, "--replace")
      #expect(run.code == 2 && run.errors.contains("a backup of the store's own kind, a \(other.title)"), "\(run)")
      #expect(try Data(contentsOf: URL(filePath: target)) == before)
    }
    let new = workspace.path("new.\(other.rawValue)")
    let run = try await larder("restore", backup, "--to", new)
    #expect(run.code == 2 && run.errors.contains("a \(other.title)"), "\(run)")
    #expect(!FileManager.default.fileExists(atPath: new))
  }

  @Test(arguments: pairs) func `a store that an app has open is not replaced by one of the other kind`(kind: StoreKind, other: StoreKind)
    async throws
  {
    let workspace = try Workspace()
    let backup = try await backup(kind, workspace)
    let path = try await workspace.store(other)
    let app = try await Store.open(StoreFile(path: path).backend)
    try FileManager.default.removeItem(atPath: path + "-lock")
    #expect(try await larder("restore", backup, "--to", path, "--replace").code == 2)
    let spots = try await app.repository(RepositorySchema<Spot>("spots"))
    try await spots.save(Spot(id: "later", name: "Later", rating: 1, tags: []))
    try await app.close()
  }

  @Test(arguments: pairs) func `a backup is not written under a name of the other kind`(kind: StoreKind, other: StoreKind) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(kind)
    let run = try await larder("backup", store, "--to", workspace.path("b.\(other.rawValue)"))
    #expect(run.code == 2 && run.errors.contains("a backup of the store's own kind, a \(kind.title)"), "\(run)")
    #expect(!FileManager.default.fileExists(atPath: workspace.path("b.\(other.rawValue)")))
  }

  @Test(arguments: StoreKind.allCases) func `a name that says no kind gets that of the backup`(kind: StoreKind) async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(kind)
    let (backup, target) = (workspace.path("copy.data"), workspace.path("spots.data"))
    #expect(try await larder("backup", store, "--to", backup).code == 0)
    #expect(try await larder("restore", backup, "--to", target).code == 0)
    // Bytes that say nothing are no reason to keep a backup from their place.
    try Data("damaged".utf8).write(to: URL(filePath: target))
    let run = try await larder("restore", backup, "--to", target, "--replace")
    #expect(run.code == 0, "\(run)")
    #expect(try await larder("diff", store, target).code == 0)
  }
}
