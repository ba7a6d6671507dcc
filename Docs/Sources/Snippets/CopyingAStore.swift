import Foundation
import Larder
import LarderSQLite

func moveToSQLite(json: URL, database: URL) async throws -> LocalRepository<Spot> {
  let store = try await Store.open(JSONFileBackend(file: json))
  let report = try await store.copy(to: SQLiteBackend(file: database))
  try await store.close()
  print("\(report.recordCount) records, as of commit \(report.commit)")
  return try await LocalRepository<Spot>(sqliteFile: database, schema: RepositorySchema("spots"))
}

func moveBack(database: URL, json: URL) async throws {
  let store = try await Store.open(SQLiteBackend(file: database))
  try await store.copy(to: JSONFileBackend(file: json))
  try await store.close()
}

func moveOnce(json: URL, database: URL) async throws -> LocalRepository<Spot> {
  if FileManager.default.fileExists(atPath: json.path) {
    let store = try await Store.open(JSONFileBackend(file: json))
    do {
      try await store.copy(to: SQLiteBackend(file: database))
    } catch RepositoryError.Code.alreadyExists {
      // An earlier launch has copied it, and was killed before it set the old file aside.
    } catch {
      throw error
    }
    try await store.checkpoint()  // so that no journal is left beside it
    try await store.close()
    try FileManager.default.moveItem(at: json, to: json.appendingPathExtension("old"))
  }
  return try await LocalRepository<Spot>(sqliteFile: database, schema: RepositorySchema("spots"))
}
