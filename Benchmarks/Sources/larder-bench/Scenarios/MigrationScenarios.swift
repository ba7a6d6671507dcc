import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder
import LarderSQLite

let migrationScenarios = [
  Scenario(
    name: "migrate", group: .opening, title: "Open a store and migrate every record", operation: "record",
    notes: [
      "Every record is decoded, changed by a step in Swift, encoded and written, in batches that a crash may interrupt; with a copy of the old store first."
    ],
    reason:
      "GRDB runs one UPDATE in SQL, which calls no Swift, decodes nothing and makes no copy of the old store. A step that needs "
      + "Swift costs it a load and a save of each record."
  ) { bench in
    let places = try bench.places()
    var contenders = bench.wanted([.json, .sqlite]).map { engine in
      Contender(name: engine.title, kind: .larder) { _ in
        try await withDirectory { directory in
          let first = try await LarderStore(engine, in: directory)
          try await first.save(contentsOf: places)
          try await first.close()
          let start = clock.now
          let repository = try await migrated(engine, directory)
          let time = (clock.now - start).microseconds / Double(places.count)
          guard try await repository.find(by: places[0].id)?.rating == places[0].rating + 1 else {
            throw BenchError("expected a migrated record, found an old one")
          }
          try await repository.close()
          return time
        }
      }
    }
    if bench.wants(.grdb) {
      contenders.append(
        Contender(name: "GRDB, in SQL", kind: .peer) { _ in
          try await withDirectory { directory in
            let store = try await GRDBStore(in: directory)
            try await store.save(contentsOf: places)
            let time = try await clock.measure { try await store.rewriteAll() }.microseconds / Double(places.count)
            try await store.close()
            return time
          }
        })
      contenders.append(
        Contender(name: "GRDB, in Swift", kind: .peer) { _ in
          try await withDirectory { directory in
            let store = try await GRDBStore(in: directory)
            try await store.save(contentsOf: places)
            let time = try await clock.measure { try await store.rewriteEach() }.microseconds / Double(places.count)
            try await store.close()
            return time
          }
        })
    }
    return try await bench.race(contenders, rounds: bench.rounds(3), warmUp: 0)
  }
]

/// Opens a store whose records are of version 1, and rewrites all of them before it returns.
private func migrated(_ engine: Engine, _ directory: URL) async throws -> LocalRepository<Place> {
  let step = Migration(from: 1, Place.self, to: Place.self) { old in
    var place = old
    place.rating += 1
    place.notes += "."
    return place
  }
  let schema = RepositorySchema<Place>("places", version: 2, migrations: [step])
  let options = StoreOptions(migration: .init(mode: .eager))
  let file = directory.appendingPathComponent("places.\(engine.rawValue)")
  return engine == .json
    ? try await LocalRepository(jsonFile: file, schema: schema, options: options)
    : try await LocalRepository(sqliteFile: file, schema: schema, options: options)
}
