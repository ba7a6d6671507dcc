import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

let openingScenarios = [
  Scenario(
    name: "open", group: .opening, title: "Open a store and read the first record", operation: "opening",
    base: "SQLite in C, all values read",
    goals: [Goal("Larder JSON", .atMost(50_000)), Goal("Larder SQLite", .atMost(60_000))],
    notes: ["Decoding means JSONDecoder over one array of the same records, which is what a store in one file does at least."],
    reason:
      "GRDB reads no record when it opens, and goes to the disk at every read. Larder reads all records when it opens, and goes to the disk for none of them again."
  ) { bench in
    let places = try bench.places()
    return try await withDirectory { directory in
      for (_, store) in try await filled(directory, places, bench) { try await store.close() }
      let id = places[places.count / 2].id
      var contenders = bench.wanted(Engine.onDisk).map { engine in
        Contender(name: engine.title, kind: engine.kind) { _ in
          let start = clock.now
          let store: any PlaceStore =
            if engine == .grdb { try await GRDBStore(in: directory) } else { try await LarderStore(engine, in: directory) }
          try expect(try await store.find(id))
          let time = (clock.now - start).microseconds
          try await store.close()
          return time
        }
      }
      if bench.wants(.plainSQLite) {
        let ready = try readyRecords(places)
        try PlainSQLite(in: directory).save(ready.map { ($0.id, $0.bytes(0)) }, round: 0)
        contenders.append(
          .timed("SQLite in C, all values read", .limit) { _ in
            guard try PlainSQLite(in: directory).scan() > 0 else { throw BenchError("expected records, found none") }
          })
      }
      if bench.wants(.write) {
        let bytes = directory.appendingPathComponent("places.json")
        contenders.append(
          .timed("the bytes of the JSON file read", .limit) { _ in
            guard try Data(contentsOf: bytes).count > 0 else { throw BenchError("expected bytes, found none") }
          })
      }
      if bench.wants(.fileActor) {
        let all = try JSONEncoder().encode(places)
        contenders.append(
          .timed("decoding with JSONDecoder", .peer) { _ in try expect(try JSONDecoder().decode([Place].self, from: all), places.count) })
      }
      return try await bench.race(contenders, rounds: bench.rounds(9))
    }
  },
  Scenario(
    name: "first-query", group: .opening, title: "Make an index: the first query that needs it", operation: "first query",
    goals: [
      Goal("Larder JSON, ordered", .atMost(100_000)), Goal("Larder JSON, text", .atMost(250_000)),
      Goal("Larder JSON, all four", .atMost(400_000)), Goal("Larder SQLite, ordered", .atMost(100_000)),
    ],
    notes: [
      "A store that was opened just before, in which nothing was read yet; “all four” is an opening that makes all declared indexes at once."
    ],
    reason: "A database keeps its indexes on disk and has none to make; Larder makes them in each launch, when they are first needed."
  ) { bench in
    let places = try bench.places()
    return try await withDirectory { directory in
      for engine in bench.wanted([.json, .sqlite]) {
        let store = try await LarderStore(engine, in: directory)
        try await store.save(contentsOf: places)
        try await store.close()
      }
      let kinds: [(String, RepositoryIndex<Place>, Query<Place>)] = [
        ("ordered", Place.Indexes.ordered, Place.best),
        ("geo", Place.Indexes.geo, Query().near(latitude: 0, longitude: 0).limit(1)),
        ("text", Place.Indexes.text, Query().matching(Vocabulary.words[40])),
      ]
      var contenders: [Contender] = []
      for engine in bench.wanted([.json, .sqlite]) {
        for (name, index, query) in kinds {
          contenders.append(
            Contender(name: "\(engine.title), \(name)", kind: .larder) { _ in
              let store = try await LarderStore(engine, in: directory, indexes: [index])
              let start = clock.now
              _ = try await store.repository.fetch(query)
              let time = (clock.now - start).microseconds
              try await store.close()
              return time
            })
        }
        for (name, indexes) in [("all four", Place.Indexes.four), ("none", [])] {
          contenders.append(
            Contender(name: "\(engine.title), \(name)", kind: .larder) { _ in
              let start = clock.now
              let store = try await LarderStore(engine, in: directory, StoreOptions(indexing: .eager), indexes: indexes)
              let time = (clock.now - start).microseconds
              try await store.close()
              return time
            })
        }
      }
      return try await bench.race(contenders, rounds: bench.rounds(5))
    }
  },
]
