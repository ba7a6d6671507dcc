import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

let readingScenarios = [
  Scenario(
    name: "find", group: .reading, title: "Find one record by its id", operation: "find", base: "dictionary",
    goals: [
      Goal("Larder JSON, main actor", .atMostTimes(1.5, of: "dictionary")),
      Goal("Larder JSON, task", .atMostTimes(1.5, of: "dictionary")),
      Goal("Larder JSON, task", .atMostTimes(1, of: "dictionary in an actor")),
      Goal("Larder SQLite, main actor", .atMostTimes(1.5, of: "dictionary")),
    ],
    notes: ["Ids in random order; every record was read before."]
  ) { bench in
    let places = try bench.places()
    var numbers = SeededNumbers(1)
    let shuffled = places.map(\.id).shuffled(using: &numbers)
    let count = min(bench.operations(20_000), places.count)
    // Others in each round, until all were asked for: what was found just now is still in the processor's caches.
    let ids = { @Sendable (round: Int) in
      let start = round * count % (shuffled.count - count + 1)
      return Array(shuffled[start..<start + count])
    }
    return try await withDirectory { directory in
      var (contenders, stores): ([Contender], [any PlaceStore]) = ([], [])
      for engine in bench.wanted([.memory, .json, .sqlite]) {
        let store = try await LarderStore(engine, in: directory)
        try await store.save(contentsOf: places)
        try expect(try await store.loadAll(), places.count)
        stores.append(store)
        let repository = store.repository
        contenders.append(.timed(engine, ", main actor", operations: count) { try await findOnMainActor(ids($0), in: repository) })
        contenders.append(
          .timed(engine, ", task", operations: count) { for id in ids($0) { try expect(try await repository.find(by: id)) } })
      }
      if bench.wants(.grdb) {
        let store = try await GRDBStore(in: directory)
        try await store.save(contentsOf: places)
        stores.append(store)
        let some = max(1, count / 20)
        contenders.append(
          .timed(.grdb, ", task", operations: some) { for id in ids($0).prefix(some) { try expect(try await store.find(id)) } })
        contenders.append(
          .timed(.grdb, ", blocking", operations: some) { try findBlocking(Array(ids($0).prefix(some)), in: store) })
      }
      if bench.wants(.dictionary) {
        let dictionary = Dictionary(places.map { ($0.id, $0) }) { first, _ in first }
        contenders.append(.timed(.dictionary, operations: count) { for id in ids($0) { try expect(dictionary[id]) } })
      }
      if bench.wants(.dictionaryActor) {
        let dictionary = DictionaryStore(places)
        contenders.append(.timed(.dictionaryActor, operations: count) { for id in ids($0) { try expect(await dictionary.find(id)) } })
      }
      let series = try await bench.race(contenders, rounds: bench.rounds(15))
      for store in stores { try await store.close() }
      return series
    }
  },
  Scenario(
    name: "coding", group: .reading, title: "Encode and decode one record", operation: "record",
    notes: [
      "Larder's encoding is a save of 512 records to a closed store, which is refused once they are encoded.",
      "Its decoding is the first touch of a record in a store in memory.",
    ]
  ) { bench in
    let places = Array(try bench.places().prefix(bench.operations(10_000)))
    let encoded = try places.map { try JSONEncoder().encode($0) }
    let encoder = try await Encoding()
    return try await withDirectory { directory in
      guard bench.wants(.memory) else { return [] }
      return try await bench.race(
        [
          encoder.contender("Larder, encoding", .larder, places),
          .timed("JSONEncoder, encoding", .peer, operations: places.count) { _ in
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            for place in places { _ = try encoder.encode(place) }
          },
          Contender(name: "Larder, decoding", kind: .larder) { _ in
            let store = try await LarderStore(.memory, in: directory)
            try await store.save(contentsOf: places)
            return try await clock.measure { try expect(try await store.loadAll(), places.count) }.microseconds / Double(places.count)
          },
          .timed("JSONDecoder, decoding", .peer, operations: places.count) { _ in
            let decoder = JSONDecoder()
            for bytes in encoded { try expect(try decoder.decode(Place.self, from: bytes)) }
          },
        ], rounds: bench.rounds(9))
    }
  },
  Scenario(
    name: "load-all", group: .reading, title: "Load all records", operation: "record", base: "GRDB",
    goals: [
      Goal("Larder JSON, first time", .atMost(1.6)), Goal("Larder JSON, first time", .timesFaster(1.4, than: "GRDB")),
      Goal("Larder SQLite, first time", .atMost(1.6)),
    ],
    notes: ["The first time every record is decoded, in a store that was opened just before; again, they are copied out of memory."]
  ) { bench in
    let places = try bench.places()
    return try await withDirectory { directory in
      for engine in bench.wanted([.json, .sqlite]) {
        let store = try await LarderStore(engine, in: directory)
        try await store.save(contentsOf: places)
        try await store.close()
      }
      var contenders: [Contender] = []
      for engine in bench.wanted([.json, .sqlite]) {
        for isFirst in [true, false] {
          contenders.append(
            Contender(name: engine.title + (isFirst ? ", first time" : ", again"), kind: .larder) { _ in
              let store = try await LarderStore(engine, in: directory)
              if !isFirst { _ = try await store.loadAll() }
              let start = clock.now
              try expect(try await store.loadAll(), places.count)
              let time = (clock.now - start).microseconds / Double(places.count)
              try await store.close()
              return time
            })
        }
      }
      if bench.wants(.grdb) {
        let store = try await GRDBStore(in: directory)
        try await store.save(contentsOf: places)
        contenders.append(.timed(.grdb, operations: places.count) { _ in try expect(try await store.loadAll(), places.count) })
      }
      return try await bench.race(contenders, rounds: bench.rounds(7))
    }
  },
]

@MainActor private func findOnMainActor(_ ids: [UUID], in repository: LocalRepository<Place>) async throws {
  for id in ids { try expect(try await repository.find(by: id)) }
}

private func findBlocking(_ ids: [UUID], in store: GRDBStore) throws {
  for id in ids { try expect(try store.findBlocking(id)) }
}
