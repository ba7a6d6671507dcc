import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

let pagingScenarios = [
  Scenario(
    name: "page", group: .queries, title: "A page of 50", operation: "page",
    goals: [
      Goal("Larder memory, offset at 90 %", .atMost(100)), Goal("Larder memory, without an index", .atMost(30_000)),
      Goal("Larder memory, after a cursor at 90 %", .atMost(100)),
      Goal("Larder memory, without an index", .timesFaster(1, than: "GRDB, without an index")),
      Goal("Larder memory, without an index, again", .atMost(100)),
    ],
    notes: ["By population, which is indexed, and by name, which is not. Again: by the automatic index that the first page left behind."],
    reason:
      "Without an index SQLite sorts one column, and Larder reads the field out of every record. Declare an index for a field that you page by."
  ) { bench in
    let places = try bench.places()
    let offset = places.count * 9 / 10
    return try await withDirectory { directory in
      var contenders: [Contender] = []
      let count = bench.operations(20)
      if bench.wants(.memory) {
        let store = try await LarderStore(
          .memory, in: directory, .init(buildsAutomaticIndexes: false), indexes: [Place.Indexes.population])
        try await store.save(contentsOf: places)
        let automatic = try await LarderStore(.memory, in: directory)
        try await automatic.save(contentsOf: places)
        let repository = store.repository
        let byPopulation = Query<Place>().sorted(by: \.population)
        let byName = Query<Place>().sorted(by: \.name)
        let cursor = try await repository.page(byPopulation, limit: offset).next
        _ = try await automatic.repository.page(byName, limit: 50)
        // A smaller collection gets no automatic index.
        while places.count >= 10_000, automatic.repository.explain(byName.limit(50)).index == nil { await Task.yield() }
        let idCursor = try await repository.page(Query<Place>(), limit: offset).next
        contenders += [
          .repeated(.memory, ", first", count) { _ in try expect(try await repository.page(byPopulation, limit: 50).items, 50) },
          .repeated(.memory, ", after a cursor at 90 %", count) { _ in
            try expect(try await repository.page(byPopulation, after: cursor, limit: 50).items, 50)
          },
          .repeated(.memory, ", by id after a cursor at 90 %", count) { _ in
            try expect(try await repository.page(Query(), after: idCursor, limit: 50).items, 50)
          },
          .repeated(.memory, ", offset at 90 %", max(1, count / 10)) { _ in
            try expect(try await repository.fetch(byPopulation.offset(offset).limit(50)), 50)
          },
          .repeated(.memory, ", without an index", 1) { _ in try expect(try await repository.page(byName, limit: 50).items, 50) },
          .repeated(.memory, ", without an index, again", count) { _ in
            try expect(try await automatic.repository.page(byName, limit: 50).items, 50)
          },
        ]
      }
      if bench.wants(.grdb) {
        let store = try await GRDBStore(in: directory, isIndexed: true)
        try await store.save(contentsOf: places)
        contenders += [
          .repeated(.grdb, ", first", count) { _ in try expect(try await store.page(after: 0), 50) },
          .repeated(.grdb, ", offset at 90 %", max(1, count / 10)) { _ in try expect(try await store.page(after: offset), 50) },
          .repeated(.grdb, ", without an index", 1) { _ in try expect(try await store.pageWithoutIndex(), 50) },
        ]
      }
      return try await bench.race(contenders, rounds: bench.rounds(9))
    }
  }
]
