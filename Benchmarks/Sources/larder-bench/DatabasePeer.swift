import Foundation
import GRDB

/// The same records in a GRDB database file, with the composite index that the query wants, read by a query that was built once.
struct DatabasePeer<Item: SomePlace>: Sendable {
  private let database: DatabaseQueue
  private let best: QueryInterfaceRequest<Item>
  private let bestAscending: QueryInterfaceRequest<Item>

  init(in directory: URL, _ items: [Item]) throws {
    database = try DatabaseQueue(path: directory.appendingPathComponent("peer.sqlite").path)
    try database.write { database in
      try database.create(table: "place") { table in
        if Item.ID.self == Int.self { table.primaryKey("id", .integer) } else { table.primaryKey("id", .blob) }
        for name in ["name", "slug", "country", "notes"] { table.column(name, .text).notNull() }
        for name in ["latitude", "longitude"] { table.column(name, .double).notNull() }
        table.column("rating", .integer).notNull()
      }
      for item in items { try item.insert(database) }
      try database.create(index: "place_by_country_rating", on: "place", columns: ["country", "rating"])
      try database.execute(sql: "ANALYZE")
    }
    let wanted = Item.filter(Column("country") == "C7" && Column("rating") >= 4).limit(50)
    best = wanted.order(Column("rating").desc)
    bestAscending = wanted.order(Column("rating"))
  }

  /// The query as GRDB's guide has it: records decoded by `Codable`, on the caller's thread.
  func fetchBest() throws -> [Item] { try database.read { try best.fetchAll($0) } }
  func fetchBestAscending() throws -> [Item] { try database.read { try bestAscending.fetchAll($0) } }

  func fetchBestMadeAnew() throws -> [Item] {
    try database.read { database in
      try Item.filter(Column("country") == "C7" && Column("rating") >= 4).order(Column("rating").desc).limit(50).fetchAll(database)
    }
  }

  /// The rows alone, copied and not decoded: what no way of decoding can be faster than.
  func fetchRows() throws -> [Row] { try database.read { try Row.fetchAll($0, best) } }

  func plan() throws -> String {
    try database.read { database in
      let statement = try best.makePreparedRequest(database).statement
      let rows = try Row.fetchAll(database, sql: "EXPLAIN QUERY PLAN \(statement.sql)", arguments: statement.arguments)
      return rows.map { $0["detail"] as String }.joined(separator: "; ")
    }
  }
}
