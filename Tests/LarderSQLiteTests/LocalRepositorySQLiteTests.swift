import Foundation
import Larder
import LarderSQLite
import TestSupport
import Testing

private struct Spot: Codable, Identifiable, Sendable, Equatable {
  var id: String
  var name: String
}

@Suite("SQLite: repositories", .timeLimit(.minutes(15)))
struct LocalRepositorySQLiteTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  @Test func whatARepositorySavedIsThereAfterReopening() async throws {
    let ids = ["", "a\0one", "a\0two", "caf\u{E9}", "cafe\u{301}", "../x", "👨‍👩‍👧"]
    do {
      let spots = try await LocalRepository<Spot>(sqliteFile: url, schema: .init("spots"))
      try await spots.save(contentsOf: ids.enumerated().map { Spot(id: $1, name: "\($0)") })
      try await spots.save(Spot(id: "gone", name: "-"))
      #expect(try await spots.delete("gone"))
      try await spots.close()
    }
    let spots = try await LocalRepository<Spot>(sqliteFile: url, schema: .init("spots"))
    for (number, id) in ids.enumerated() {
      let found = try await spots.find(by: id)
      #expect(found?.name == "\(number)")
      #expect(found.map { Array($0.id.utf8) } == Array(id.utf8))
    }
    #expect(try await spots.find(by: "gone") == nil)
    #expect(spots.openReport.recordCount == ids.count && spots.openReport.isClean)
    try await spots.close()
    #expect(try directory.contents().keys.sorted() == ["spots.sqlite"])
  }

  @Test func manyTasksSaveAtOnce() async throws {
    let spots = try await LocalRepository<Spot>(sqliteFile: url, schema: .init("spots"))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<200 { group.addTask { try await spots.save(Spot(id: "\(number)", name: "spot")) } }
      try await group.waitForAll()
    }
    try await spots.close()
    let again = try await LocalRepository<Spot>(sqliteFile: url, schema: .init("spots"))
    let count = try await again.loadAll().count
    #expect(count == 200)
    try await again.close()
  }

  @Test func aSecondOpenIsRefusedAndTheFirstUndisturbed() async throws {
    let spots = try await LocalRepository<Spot>(sqliteFile: url, schema: .init("spots"))
    let error = await #expect(throws: RepositoryError.self) { _ = try await LocalRepository<Spot>(sqliteFile: url) }
    #expect(error?.code == .alreadyOpen)
    try await spots.save(Spot(id: "a", name: "b"))
    try await spots.close()
  }
}
