import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

let growthScenarios = [
  Scenario(
    name: "growth", group: .growth, title: "The cost of one operation over the number of records", operation: "operation",
    goals: [
      "JSON, save durably", "JSON, save buffered", "JSON, update", "SQLite, save durably", "SQLite, save buffered", "SQLite, update",
      "JSON, top 50", "JSON, page at 90 %",
    ].map { Goal($0, .grows(1.2)) }
      + ["JSON, find", "SQLite, find"].map { Goal($0, .growsBeside(1.2, of: "dictionary, find")) },
    notes: [
      "A store of each size; sizes take turns. What is looked up in more memory than the processor caches costs more, in a dictionary too.",
      "Opening and loading grow with the records by their nature, and are given for each record.",
    ]
  ) { bench in
    let sizes = bench.isQuick ? [1_000, 10_000] : [1_000, 100_000, 1_000_000]
    return try await withDirectory { directory in
      var contenders: [Contender] = []
      for engine in bench.wanted([.json, .sqlite]) {
        for size in sizes {
          bench.progress("filling \(engine.title) with \(Figures.count(size)) records")
          contenders += try await grown(engine, size, bench, directory.making("\(engine.rawValue)-\(size)"))
        }
      }
      if bench.wants(.dictionary) {
        for size in sizes {
          let places = try Bench.places(size)
          let dictionary = Dictionary(places.map { ($0.id, $0) }) { first, _ in first }
          let ids = places.map(\.id)
          contenders.append(
            .timed("dictionary, find", .limit, size: size, operations: 10_000) { round in
              for number in 0..<10_000 { try expect(dictionary[ids[(round * 10_000 + number) * 7_919 % ids.count]]) }
            })
        }
      }
      return try await bench.race(contenders, rounds: bench.rounds(9))
    }
  },
  Scenario(
    name: "growth-journal", group: .growth, title: "The cost of one operation over the changes in the journal", operation: "operation",
    goals: [Goal("save buffered", .grows(1.2)), Goal("save durably", .grows(1.2)), Goal("find", .grows(1.2))],
    notes: ["A JSON store whose journal is not folded; the sizes are changes in it, over 1,000 records."]
  ) { bench in
    guard bench.wants(.json) else { return [] }
    let places = try Bench.places(1_000)
    return try await withDirectory { directory in
      var contenders: [Contender] = []
      for size in bench.isQuick ? [0, 10_000] : [0, 10_000, 100_000, 300_000] {
        let options = StoreOptions(checkpoint: .manual)
        let store = try await LarderStore(.json, in: directory.making("\(size)"), options)
        try await store.save(contentsOf: places)
        try await store.checkpoint()
        for first in stride(from: 0, to: size, by: places.count) {
          try await store.repository.save(contentsOf: places.map { $0.changed(first) }, durability: .buffered)
        }
        contenders += operations("", store, places, size, bench)
      }
      return try await bench.race(contenders, rounds: bench.rounds(9))
    }
  },
]

/// Returns the contenders over one store of a size.
private func grown(_ engine: Engine, _ size: Int, _ bench: Bench, _ directory: URL) async throws -> [Contender] {
  let places = try Bench.places(size)
  let prefix = engine == .json ? "JSON, " : "SQLite, "
  let store = try await LarderStore(engine, in: directory, indexes: [Place.Indexes.ordered, Place.Indexes.population])
  try await store.save(contentsOf: places)
  try await store.checkpoint()
  _ = try await store.loadAll()
  let repository = store.repository
  var contenders = operations(prefix, store, places, size, bench)
  contenders.append(
    .timed(prefix + "update", .larder, size: size, operations: bench.operations(100)) { round in
      let count = bench.operations(100)
      for number in round * count..<(round + 1) * count {
        try await store.update(places[number * 7_919 % size].id, population: 3_000_000 + number)
      }
    })
  if engine == .json {
    let byPopulation = Query<Place>().sorted(by: \.population)
    let cursor = try await repository.page(byPopulation, limit: size * 9 / 10).next
    contenders += [
      .timed(prefix + "top 50", .larder, size: size, operations: bench.operations(100)) { _ in
        for _ in 0..<bench.operations(100) { _ = try await store.best() }
      },
      .timed(prefix + "page at 90 %", .larder, size: size, operations: bench.operations(50)) { _ in
        for _ in 0..<bench.operations(50) { try expect(try await repository.page(byPopulation, after: cursor, limit: 50).items, 50) }
      },
    ]
  }
  // Closed and opened again each time: a copy of the records in a store of its own.
  let copy = try directory.making("copy")
  let second = try await LarderStore(engine, in: copy)
  try await second.save(contentsOf: places)
  try await second.close()
  contenders.append(
    Contender(name: prefix + "open, a record", kind: .larder, size: size) { _ in
      let start = clock.now
      let opened = try await LarderStore(engine, in: copy)
      try expect(try await opened.find(places[size / 2].id))
      let time = (clock.now - start).microseconds / Double(size)
      try await opened.close()
      return time
    })
  return contenders
}

/// Returns saves and finds over a store.
private func operations(_ prefix: String, _ store: LarderStore, _ places: [Place], _ size: Int, _ bench: Bench) -> [Contender] {
  let repository = store.repository
  let save = { @Sendable (round: Int, count: Int, durability: Durability) async throws in
    for number in round * count..<(round + 1) * count {
      try await repository.save(places[number * 7_919 % places.count].changed(number), durability: durability)
    }
  }
  let (durable, buffered, finds) = (bench.operations(100), bench.operations(500), bench.operations(10_000))
  return [
    .timed(prefix + "save durably", .larder, size: size, operations: durable) { try await save($0, durable, .durable) },
    .timed(prefix + "save buffered", .larder, size: size, operations: buffered) { try await save($0, buffered, .buffered) },
    .timed(prefix + "find", .larder, size: size, operations: finds) { round in
      for number in round * finds..<(round + 1) * finds {
        try expect(try await repository.find(by: places[number * 7_919 % places.count].id))
      }
    },
  ]
}
