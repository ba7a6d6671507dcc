import Foundation
import Larder
import LarderSQLite

/// Stores that several have open, and what is done to a store as a whole: following, checking, copying, migrating.
enum Tending {
  private static let buffered = StoreOptions(durability: .buffered, checkpoint: .init(idle: nil, bySize: true))
  private static let shared = StoreOptions(access: .shared, durability: .buffered)

  static let scenarios =
    sharing
    + each("check") { _, store, _ in
      try expect(await store.verify().isSound, "a sound store")
    }
    + each("backup") { place, store, number in
      let copy = place.file("copy \(number)")
      try await store.backup(to: copy)
      try FileManager.default.removeItem(at: copy)
    } + [migration]

  private static let sharing = [
    Scenario("two that share, SQLite", weight: 5) { place in
      let file = place.file("jars.sqlite")
      let jars = try await LocalRepository<Jar>(sqliteFile: file, schema: Jar.schema, options: shared)
      let others = try await LocalRepository<Jar>(sqliteFile: file, schema: Jar.schema, options: shared)
      return Subject { number in
        let (writer, reader) = number.isMultiple(of: 2) ? (jars, others) : (others, jars)
        try await writer.save(Jar(number % 7, use: number))
        try await reader.refresh()
        try expect(try await reader.find(by: number % 7) == Jar(number % 7, use: number), "what the other has saved")
      } end: {
        try await jars.close()
        try await others.close()
      }
    },
    Scenario("a reader that follows, SQLite", weight: 5) { place in
      let file = place.file("jars.sqlite")
      let jars = try await LocalRepository<Jar>(sqliteFile: file, schema: Jar.schema, options: shared)
      try await jars.save(Jar(1))
      let reader = try await LocalRepository<Jar>(sqliteFile: file, schema: Jar.schema, options: StoreOptions(access: .readOnly))
      return Subject { number in
        try await jars.save(Jar(1, use: number))
        try await reader.refresh()
        try expect(try await reader.find(by: 1) == Jar(1, use: number), "what was saved")
      } end: {
        try await reader.close()
        try await jars.close()
      }
    },
  ]

  private static let migration = Scenario("migration, JSON", weight: 20) { place in
    Subject { number in
      let old = RepositorySchema<Jar>("jars")
      let new = RepositorySchema<Jar>("jars", version: 2, migrations: [.init(from: 1) { $0["shelf"] = 7 }])
      let file = place.file("jars.json")
      let before = try await LocalRepository<Jar>(jsonFile: file, schema: old, options: buffered)
      try await before.save(Jar(1, use: number))
      try await before.close()
      let after = try await LocalRepository<Jar>(jsonFile: file, schema: new, options: buffered)
      try expect(try await after.find(by: 1)?.shelf == 7, "a migrated jar")
      try await after.close()
      for name in try FileManager.default.contentsOfDirectory(atPath: place.directory.path) {
        try FileManager.default.removeItem(at: place.file(name))
      }
    }
  }

  /// Makes a scenario for each backend on disk, over a store that holds all jars.
  private static func each(_ name: String, _ use: @escaping @Sendable (Place, Store, Int) async throws -> Void) -> [Scenario] {
    [("JSON", false), ("SQLite", true)].map { backend, isSQLite in
      Scenario("\(name), \(backend)", weight: 10) { place in
        let file = place.file("jars")
        let store = try await Store.open(isSQLite ? SQLiteBackend(file: file) : JSONFileBackend(file: file), options: buffered)
        let jars = try await store.repository(Jar.schema)
        try await jars.save(contentsOf: Jar.all)
        return Subject {
          try await use(place, store, $0)
        } end: {
          try await store.close()
        }
      }
    }
  }
}
