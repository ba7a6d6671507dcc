import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

let observationScenarios = [
  Scenario(
    name: "live-queries", group: .observation, title: "Save beside live queries that the save does not touch, buffered", operation: "save",
    base: "no live query",
    goals: [
      Goal("100 live queries", .adds(10, over: "no live query")), Goal("100 live queries, later", .adds(10, over: "no live query, later")),
    ],
    notes: ["In a JSON store; “later” is the same store after all rounds of the first one."]
  ) { bench in
    guard bench.wants(.json) else { return [] }
    let places = try bench.places()
    let count = bench.operations(200)
    return try await withDirectory { directory in
      var (contenders, stores, readers): ([Contender], [LarderStore], [Task<Void, Never>]) = ([], [], [])
      for queries in [0, 1, 100] {
        let options = StoreOptions(durability: .buffered, checkpoint: .manual)
        let store = try await LarderStore(.json, in: directory.making("\(queries)"), options, indexes: [Place.Indexes.population])
        try await store.save(contentsOf: places)
        // The index is made before the first turn, so that no store is without one.
        _ = try await store.repository.fetch(Query().sorted(by: \.population).limit(1))
        for query in 0..<queries { readers.append(try await follow(query, in: store.repository)) }
        stores.append(store)
        let name = queries == 0 ? "no live query" : "\(queries) live \(queries == 1 ? "query" : "queries")"
        contenders.append(
          .timed(name, .larder, operations: count) { round in
            for operation in 0..<count {
              let number = round * count + operation
              try await store.save(places[number * 31 % places.count].changed(number))
            }
          })
      }
      let rounds = bench.rounds(9)
      let first = try await bench.race(contenders, rounds: rounds)
      let later = try await bench.race(contenders, rounds: rounds)
      for reader in readers { reader.cancel() }
      for store in stores { try await store.close() }
      return first + later.map { Series($0.name + ", later", $0.kind, $0.rounds) }
    }
  },
  Scenario(
    name: "observe", group: .observation, title: "From a durable save to the observer who sees it", operation: "save and news",
    base: "GRDB", goals: [Goal("Larder JSON", .timesFaster(1, than: "GRDB")), Goal("Larder SQLite", .timesFaster(1, than: "GRDB"))],
    notes: ["One observer of the greatest population waits in the task that saves."]
  ) { bench in
    let places = try bench.places()
    let count = bench.operations(50)
    return try await withDirectory { directory in
      var (contenders, stores): ([Contender], [any PlaceStore]) = ([], [])
      for engine in bench.wanted([.json, .sqlite]) {
        let store = try await LarderStore(engine, in: directory, indexes: [Place.Indexes.population])
        try await store.save(contentsOf: places)
        stores.append(store)
        let query = Query<Place>().sorted(by: \.population, .reverse).limit(1)
        contenders.append(
          .timed(engine, operations: count) { round in
            var news = store.repository.results(of: query).makeAsyncIterator()
            _ = try await news.next()
            for operation in 0..<count {
              var place = places[7]
              place.population = 100_000_000 + round * count + operation
              try await store.save(place)
              var seen = try await news.next()
              while seen?.first?.population != place.population { seen = try await news.next() }
            }
          })
      }
      if bench.wants(.grdb) {
        let store = try await GRDBStore(in: directory, isIndexed: true)
        try await store.save(contentsOf: places)
        stores.append(store)
        contenders.append(
          .timed(.grdb, operations: count) { round in
            var news = store.greatestPopulations().makeAsyncIterator()
            _ = try await news.next()
            for operation in 0..<count {
              var place = places[7]
              place.population = 100_000_000 + round * count + operation
              try await store.save(place)
              var seen = try await news.next()
              while seen != place.population { seen = try await news.next() }
            }
          })
      }
      let series = try await bench.race(contenders, rounds: bench.rounds(9))
      for store in stores { try await store.close() }
      return series
    }
  },
]

/// Follows a query that finds nothing and that no save changes, and returns once it has answered for the first time.
private func follow(_ number: Int, in repository: LocalRepository<Place>) async throws -> Task<Void, Never> {
  let least = 900_000_000 + number
  let (started, announce) = AsyncStream<Void>.makeStream()
  let task = Task {
    do {
      for try await _ in repository.results(of: Query().where(#Predicate { $0.population >= least })) { announce.yield() }
    } catch { Bench.tell("live-queries: a query ended: \(error)") }
    announce.finish()
  }
  for await _ in started { return task }
  throw BenchError("expected a live query to answer, found it at its end")
}
