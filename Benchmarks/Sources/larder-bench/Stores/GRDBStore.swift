import BenchmarkRecords
import Foundation
import GRDB
import Larder

extension Place: FetchableRecord, PersistableRecord {
  package static let databaseTableName = "place"
}

/// GRDB as its guides have it: a pool, a record type with `Codable` columns, cached statements, and the same indexes and durability.
struct GRDBStore: PlaceStore {
  let pool: DatabasePool

  init(in directory: URL, _ durability: Durability = .durable, isIndexed: Bool = false) async throws {
    pool = try DatabasePool(path: directory.appendingPathComponent("places.grdb").path)
    // A pool sets NORMAL when it opens, after what its configuration prepares: a commit would not be durable when it returns.
    let wanted = durability == .durable ? 2 : 1
    try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = \(wanted)") }
    let found = try await pool.writeWithoutTransaction { try Int.fetchOne($0, sql: "PRAGMA synchronous") }
    guard found == wanted else { throw BenchError("expected GRDB to write with synchronous = \(wanted), found \(found ?? -1)") }
    try await pool.write { database in
      guard try !database.tableExists("place") else { return }
      try database.create(table: "place") { table in
        table.primaryKey("id", .blob)
        for name in ["name", "slug", "country", "timezone", "notes"] { table.column(name, .text).notNull() }
        for name in ["latitude", "longitude"] { table.column(name, .double).notNull() }
        for name in ["population", "rating"] { table.column(name, .integer).notNull() }
        table.column("isFavorite", .boolean).notNull()
      }
      if isIndexed {
        try database.create(index: "place_by_rating", on: "place", columns: ["country", "rating"])
        try database.create(index: "place_by_population", on: "place", columns: ["population"])
      }
    }
  }

  func save(_ place: Place) async throws { try await pool.write { try place.save($0) } }

  /// Inserts or replaces records in one transaction, which is what a batch promises elsewhere.
  func save(contentsOf places: [Place]) async throws {
    try await pool.write { database in for place in places { try place.upsert(database) } }
  }

  /// Inserts records that are new in one transaction, which is the quickest that GRDB has.
  func insert(contentsOf places: [Place]) async throws {
    try await pool.write { database in for place in places { try place.insert(database) } }
  }

  func update(_ id: UUID, population: Int) async throws {
    try await pool.write { database in
      guard var place = try Place.fetchOne(database, key: id) else { throw BenchError("expected a record to change, found none") }
      place.population = population
      try place.update(database)
    }
  }

  func delete(_ id: UUID) async throws { _ = try await pool.write { try Place.deleteOne($0, key: id) } }
  func find(_ id: UUID) async throws -> Place? { try await pool.read { try Place.fetchOne($0, key: id) } }
  func loadAll() async throws -> [Place] { try await pool.read { try Place.fetchAll($0) } }

  /// Calls GRDB's function that blocks the caller's thread, which is quicker than its asynchronous one.
  func findBlocking(_ id: UUID) throws -> Place? { try pool.read { try Place.fetchOne($0, key: id) } }

  func best() async throws -> [Place] {
    try await pool.read { database in
      try Place.filter(Column("country") == Place.country && Column("rating") >= 4).order(Column("rating").desc).limit(50).fetchAll(
        database)
    }
  }

  func populated(_ least: Int) async throws -> [Place] {
    try await pool.read { try Place.filter(Column("population") >= least).fetchAll($0) }
  }

  func checkpoint() async throws { _ = try await pool.writeWithoutTransaction { try $0.checkpoint(.truncate) } }
  func close() async throws { try pool.close() }
}
