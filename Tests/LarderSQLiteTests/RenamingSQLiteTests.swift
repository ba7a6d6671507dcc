import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderSQLite

private struct Spot: Codable, Identifiable, Hashable, Sendable {
  let id: Int
  var name: String
}

@Suite("SQLite: a collection that gets another name", .timeLimit(.minutes(4))) struct RenamingSQLiteTests: SQLiteSuite {
  private static let schema = RepositorySchema<Spot>("spots", renamedFrom: "records")
  private static let spots = (0..<10).map { Spot(id: $0, name: "spot \($0)") }
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  @Test func ofSeveralOpeningsOneMovesTheRecordsAndTheOthersSeeThemMoved() async throws {
    let first = try await LocalRepository<Spot>(sqliteFile: url)
    try await first.save(contentsOf: Self.spots)
    try await first.close()
    let options = StoreOptions(access: .shared, checkpoint: .manual, pollInterval: nil, lockTimeout: .seconds(30))
    var stores: [Store] = []
    // All of them have read the records under the old name before one of them moves them.
    for _ in 0..<4 { stores.append(try await Store.open(SQLiteBackend(file: url), options: options)) }
    let repositories = try await withThrowingTaskGroup(of: LocalRepository<Spot>.self) { group in
      for store in stores { group.addTask { try await store.repository(Self.schema) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(repositories.count { $0.openReport.renamed != nil } == 1)
    for repository in repositories { #expect(Set(try await repository.loadAll()) == Set(Self.spots)) }
    try await repositories[0].save(Spot(id: 99, name: "new"))
    try await repositories[1].refresh()
    #expect(try await repositories[1].find(by: 99)?.name == "new")
    for store in stores { try await store.close() }
    let database = try await LocalRepository(sqliteFile: url, schema: Self.schema)
    #expect(try await database.count() == 11 && database.openReport.renamed == nil)
    try await database.close()
  }

  @Test func aCrashLeavesTheOldNameOrTheNewOne() async throws {
    let memory = FaultInjectingBackend(InMemoryBackend())
    let first = try await LocalRepository<Spot>(backend: memory)
    try await first.save(contentsOf: Self.spots)
    try await first.close()
    try await LocalRepository(backend: memory, schema: Self.schema).close()
    let batches = memory.batches
    let seed = try #require(Seeds.list(1, for: "SQLite: crashes of a move").first)
    let result = try CrashExplorer(seed: seed, imagesPerPoint: 4).explore { (files, acknowledge: (Int) -> Void) in
      guard let files = files as? SimulatedFileSystem else { return }
      let backend = try MirroredDirectory(files).backend()
      _ = try backend.openAndRecover(StoreOptions()) { _ in }
      for (number, batch) in batches.enumerated() {
        try backend.commit(batch)
        acknowledge(number + 1)
      }
      try backend.close()
    } check: { image, acknowledged in
      try MovedState(try MirroredDirectory(image.fileSystem).backend()).check(acknowledged.last ?? 0)
    }
    #expect(result.points > 10 && result.images > 20)
  }
}
