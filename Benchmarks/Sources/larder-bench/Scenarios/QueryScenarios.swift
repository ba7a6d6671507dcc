import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

/// Returns stores with the indexes that queries want, and all records.
///
/// - Parameter engines: The engines whose answers differ: in Larder all backends answer queries from memory, in the same way.
private func indexed(_ bench: Bench, _ directory: URL, _ engines: [Engine]) async throws -> [(Engine, any PlaceStore)] {
  var stores: [(Engine, any PlaceStore)] = []
  for engine in bench.wanted(engines) {
    let store: any PlaceStore =
      if engine == .grdb {
        try await GRDBStore(in: directory, isIndexed: true)
      } else {
        try await LarderStore(engine, in: directory, indexes: [Place.Indexes.ordered, Place.Indexes.population])
      }
    try await store.save(contentsOf: bench.places())
    stores.append((engine, store))
  }
  return stores
}

let queryScenarios = [
  Scenario(
    name: "top-50", group: .queries, title: "The 50 best of a country, by an index", operation: "query", base: "GRDB",
    goals: [Goal("Larder JSON", .atMost(10)), Goal("Larder JSON", .timesFaster(10, than: "GRDB"))],
    notes: ["The index is over country and rating; the query is made anew each time."]
  ) { bench in
    try await withDirectory { directory in
      let stores = try await indexed(bench, directory, Engine.onDisk)
      let contenders = stores.map { engine, store in
        Contender.repeated(engine, "", bench.operations(200)) { _ in try expect(try await store.best(), 50) }
      }
      let series = try await bench.race(contenders, rounds: bench.rounds(15))
      for store in stores { try await store.1.close() }
      return series
    }
  },
  Scenario(
    name: "range", group: .queries, title: "A range of an index, of 2,717 in 100,000 records", operation: "query", base: "GRDB",
    goals: [Goal("Larder JSON", .atMost(1_200)), Goal("Larder JSON", .timesFaster(5, than: "GRDB"))],
    notes: ["The most populous places; every record is handed out decoded."]
  ) { bench in
    let places = try bench.places()
    let count = max(1, places.count * 2_717 / 100_000)
    let least = places.map(\.population).sorted(by: >)[count - 1]
    let found = places.count { $0.population >= least }
    return try await withDirectory { directory in
      let stores = try await indexed(bench, directory, Engine.onDisk)
      let contenders = stores.map { engine, store in
        Contender.repeated(engine, "", bench.operations(20)) { _ in try expect(try await store.populated(least), found) }
      }
      let series = try await bench.race(contenders, rounds: bench.rounds(11))
      for store in stores { try await store.1.close() }
      return series
    }
  },
  Scenario(
    name: "nearest", group: .queries, title: "The 10 nearest places", operation: "query",
    notes: ["GRDB has no index for it without an extension of SQLite's, so there is nothing to compare with."]
  ) { bench in
    let places = try bench.places()
    return try await withDirectory { directory in
      let store = try await LarderStore(.memory, in: directory, indexes: [Place.Indexes.geo])
      try await store.save(contentsOf: places)
      let repository = store.repository
      let query = { @Sendable (number: Int) -> Query<Place> in
        let center = places[number * 101 % places.count]
        return Query().near(latitude: min(90, center.latitude + 0.1), longitude: center.longitude)
      }
      let count = bench.operations(100)
      guard bench.wants(.memory) else { return [] }
      return try await bench.race(
        [
          .repeated(.memory, "", count) { try expect(try await repository.fetch(query($0).limit(10)), 10) },
          .repeated(.memory, ", with distances", count) { try expect(try await repository.matches(query($0).limit(10)), 10) },
          .repeated(.memory, ", rated 5", count) {
            try expect(try await repository.fetch(query($0).where(#Predicate { $0.rating == 5 }).limit(10)), 10)
          },
        ], rounds: bench.rounds(9))
    }
  },
  Scenario(
    name: "search", group: .queries, title: "Search for words, the 50 best", operation: "query",
    notes: ["Over name and notes; words are drawn as in a language, few of them often."]
  ) { bench in
    let words = Vocabulary.words
    let asked = [
      ("a rare word", words[2_000]), ("a common word", words[3]), ("a beginning", String(words[40].prefix(3))),
      ("two words", "\(words[20]) \(words[90])"), ("two common words", "\(words[0]) \(words[1])"),
    ]
    return try await withDirectory { directory in
      guard bench.wants(.memory) else { return [] }
      let store = try await LarderStore(.memory, in: directory, indexes: [Place.Indexes.text])
      try await store.save(contentsOf: bench.places())
      let repository = store.repository
      var contenders: [Contender] = []
      for (name, text) in asked {
        let query = Query<Place>().matching(text).limit(50)
        contenders.append(.repeated(.memory, ", \(name)", bench.operations(20)) { _ in _ = try await repository.fetch(query) })
      }
      let query = Query<Place>().matching(words[3]).limit(50)
      contenders.append(
        .repeated(.memory, ", with extracts", bench.operations(20)) { _ in _ = try await repository.matches(query).map { $0.extract } })
      return try await bench.race(contenders, rounds: bench.rounds(9))
    }
  },
  Scenario(
    name: "count", group: .queries, title: "Count, group and find the greatest, by indexes", operation: "query",
    goals: [
      Goal("Larder memory, count of a range", .timesFaster(1, than: "GRDB, count of a range")),
      Goal("Larder memory, grouped", .timesFaster(1, than: "GRDB, grouped")),
    ]
  ) { bench in
    try await withDirectory { directory in
      var contenders: [Contender] = []
      let count = bench.operations(100)
      let stores = try await indexed(bench, directory, [.memory, .grdb])
      let country = Place.country
      for (engine, store) in stores {
        if let repository = (store as? LarderStore)?.repository {
          contenders += [
            .repeated(engine, ", count of a range", count) { _ in
              guard try await repository.count(where: #Predicate { $0.country == country && $0.rating >= 4 }) > 0 else { throw nothing }
            },
            .repeated(engine, ", greatest", count) { _ in try expect(try await repository.max(of: \.population)) },
            .repeated(engine, ", grouped", count) { _ in
              guard try await repository.grouped(by: \.country).count > 1 else { throw nothing }
            },
          ]
        } else if let store = store as? GRDBStore {
          contenders += [
            .repeated(engine, ", count of a range", count) { _ in guard try await store.countBest() > 0 else { throw nothing } },
            .repeated(engine, ", greatest", count) { _ in try expect(try await store.greatestPopulation()) },
            .repeated(engine, ", grouped", max(1, count / 10)) { _ in guard try await store.countries() > 1 else { throw nothing } },
          ]
        }
      }
      let series = try await bench.race(contenders, rounds: bench.rounds(9))
      for store in stores { try await store.1.close() }
      return series
    }
  },
]

private let nothing = BenchError("expected records, found none")
