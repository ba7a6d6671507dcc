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

@Suite("SQLite: a collection that gets another name", .timeLimit(.minutes(15))) struct RenamingSQLiteTests: SQLiteSuite {
  private static let schema = RepositorySchema<Spot>("spots", renamedFrom: "records")
  private static let spots = (0..<10).map { Spot(id: $0, name: "spot \($0)") }
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  /// An older app that has the store open would see its records go, and write others under the old name.
  @Test func aStoreThatSeveralProcessesWriteIsMovedByOneThatHasItAlone() async throws {
    let options = StoreOptions(access: .shared, checkpoint: .manual, pollInterval: nil, lockTimeout: .seconds(30))
    let first = try await LocalRepository<Spot>(sqliteFile: url, options: options)
    try await first.save(contentsOf: Self.spots)
    let inStore = try await Store.open(SQLiteBackend(file: url), options: options)
    for open in [
      { _ = try await LocalRepository(sqliteFile: url, schema: Self.schema, options: options) },
      { _ = try await inStore.repository(Self.schema) },
    ] as [() async throws -> Void] {
      let error = await #expect(throws: RepositoryError.self) { try await open() }
      #expect(error?.code == .unsupported && error?.message.contains("open it once with `access: .exclusive`") == true)
    }
    #expect(try await first.count() == 10)
    try await inStore.close()
    try await first.close()
    let alone = try await LocalRepository(sqliteFile: url, schema: Self.schema)
    #expect(alone.openReport.renamed?.recordCount == 10)
    try await alone.close()
    let shared = try await LocalRepository(sqliteFile: url, schema: Self.schema, options: options)
    #expect(Set(try await shared.loadAll()) == Set(Self.spots))
    try await shared.close()
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
