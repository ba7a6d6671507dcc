import Foundation
import TestSupport
import Testing

@testable import Larder
@testable import LarderSQLite

/// The stage at which damage of each part of a SQLite store is found, by residency: the table of Docs/Promises.md.
@Suite("SQLite: when damage is found", .timeLimit(.minutes(5)))
struct DamageStageTests: SQLiteSuite {
  let directory: TemporaryDirectory

  init() throws { directory = try Self.makeDirectory() }

  enum Stage: Sendable { case opening, read, verify }

  /// A change that damage could make, as SQL, and the stage that finds it with `.full` and with `.onDisk`.
  struct Damage: Sendable, CustomTestStringConvertible {
    let part: String
    let sql: String
    let full: Stage?
    let onDisk: Stage
    var testDescription: String { part }
  }

  private struct Spot: Codable, Identifiable, Sendable, Equatable {
    var id: String
    var rank: Int
  }

  private static let spots = (1_000..<2_000).map { Spot(id: "spot-\($0)", rank: $0 % 7) }
  private static let schema = RepositorySchema<Spot>("spots", indexes: [.ordered(\.rank)])

  private func open(_ residency: Residency) async throws -> LocalRepository<Spot> {
    try await LocalRepository(
      sqliteFile: url, schema: Self.schema, options: StoreOptions(checkpoint: .manual, residency: residency))
  }

  /// Returns the first stage that finds damage, or `nil` if none does.
  private func stage(_ residency: Residency) async throws -> Stage? {
    let spots: LocalRepository<Spot>
    do { spots = try await open(residency) } catch let error as RepositoryError {
      #expect(error.code == .corrupted)
      return .opening
    }
    var found: Stage?
    if !spots.openReport.isClean { found = .opening }
    do throws(RepositoryError) {
      for spot in Self.spots { _ = try await spots.find(by: spot.id) }
      for rank in 0..<7 { _ = try await spots.fetch(Query().where(\.rank, .equal, rank)) }
    } catch {
      #expect(error.code == .corrupted)
      found = found ?? .read
    }
    let report = await spots.core.verify()
    if !report.damagedIndexes.isEmpty { found = found ?? .read }
    if !report.isSound { found = found ?? .verify }
    try await spots.close()
    return found
  }

  @Test(arguments: [
    Damage(part: "a value", sql: "UPDATE spots SET value = replace(value, '9', '8') WHERE id = 'spot-1903'", full: .opening, onDisk: .read),
    Damage(
      part: "a record that is gone, which an index has", sql: "DELETE FROM spots WHERE id = 'spot-1903'", full: .opening, onDisk: .read),
    Damage(
      part: "a record that is gone with its keys",
      sql: "DELETE FROM spots WHERE id = 'spot-1903'; DELETE FROM larder_index_1 WHERE instr(key, CAST('spot-1903' AS BLOB)) > 0",
      full: .opening, onDisk: .verify),
    Damage(part: "a tombstone", sql: "UPDATE larder_tombstones SET revision = revision - 1", full: .opening, onDisk: .opening),
    Damage(part: "the number of records", sql: "UPDATE larder_store SET records = records + 1", full: .opening, onDisk: .opening),
    Damage(part: "the row of an index", sql: "UPDATE larder_indexes SET boundaries = x'00'", full: nil, onDisk: .opening),
    Damage(
      part: "a key", sql: "UPDATE larder_index_1 SET crc = crc + 1 WHERE key = (SELECT max(key) FROM larder_index_1)", full: nil,
      onDisk: .read),
    Damage(
      part: "a key that is gone", sql: "DELETE FROM larder_index_1 WHERE key = (SELECT max(key) FROM larder_index_1)", full: nil,
      onDisk: .verify),
  ])
  func damageIsFoundAtItsStage(_ damage: Damage) async throws {
    let spots = try await open(.onDisk(cache: .bytes(0)))
    try await spots.save(contentsOf: Self.spots + [Spot(id: "gone", rank: 1)])
    _ = try await spots.fetch(Query().where(\.rank, .equal, 1))
    await spots.core.indexBuilder.stored.awaitCopies()
    try await spots.delete("gone")
    try await spots.close()
    try await open(.onDisk(cache: .bytes(0))).close()
    try ForeignDatabase(url).run(damage.sql)
    let files = try directory.contents()
    for (residency, expected) in [(Residency.onDisk(cache: .bytes(0)), Optional(damage.onDisk)), (.full, damage.full)] {
      try directory.replace(with: files)
      let found = try await stage(residency)
      #expect(found == expected, "\(residency)")
      guard expected == .read else { continue }
      // Also without the read, verify() finds it.
      try directory.replace(with: files)
      let spots = try await open(residency)
      #expect(await !spots.core.verify().isSound)
      try await spots.close()
    }
  }
}
