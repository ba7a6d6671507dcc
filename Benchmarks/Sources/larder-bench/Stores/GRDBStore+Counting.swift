import BenchmarkRecords
import Foundation
import GRDB

extension GRDBStore {
  func countBest() async throws -> Int {
    try await pool.read { try Place.filter(Column("country") == Place.country && Column("rating") >= 4).fetchCount($0) }
  }

  func greatestPopulation() async throws -> Int? {
    try await pool.read { try Int.fetchOne($0, Place.select(max(Column("population")))) }
  }

  /// Returns how many countries there are, having counted the places of each.
  func countries() async throws -> Int {
    try await pool.read { database in
      try Row.fetchAll(database, Place.select(Column("country"), count(Column("id"))).group(Column("country"))).count
    }
  }

  /// Returns a page in the order of an indexed column.
  func page(after offset: Int) async throws -> [Place] {
    try await pool.read { try Place.order(Column("population")).limit(50, offset: offset).fetchAll($0) }
  }

  /// Returns a page in the order of a column that has no index.
  func pageWithoutIndex() async throws -> [Place] {
    try await pool.read { try Place.order(Column("name")).limit(50).fetchAll($0) }
  }

  /// Writes every record anew, as a migration in SQL does.
  func rewriteAll() async throws {
    try await pool.write { try $0.execute(sql: "UPDATE place SET notes = notes || '.', rating = rating + 1") }
  }

  /// Reads every record, changes it in Swift and writes it, as a migration that needs Swift does.
  func rewriteEach() async throws {
    try await pool.write { database in
      for var place in try Place.fetchAll(database) {
        place.rating += 1
        place.notes += "."
        try place.update(database)
      }
    }
  }

  /// Returns the counts of the most populous places, now and whenever they change.
  func greatestPopulations() -> AsyncValueObservation<Int?> {
    ValueObservation.tracking { try Int.fetchOne($0, Place.select(max(Column("population")))) }.values(in: pool)
  }
}
