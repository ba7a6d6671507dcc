import BenchmarkRecords
import BenchmarkReport
import Foundation
import Larder

/// A server that is asked in memory, and answers at once.
private struct PlaceSource: RemoteSource {
  let place: Place

  func fetch(_ key: String, validator: String?) async throws -> Fetched<Place> { .value(place) }
}

/// A server that answers once it is told to.
private struct GatedSource: RemoteSource {
  let place: Place
  let gate: AsyncStream<Void>

  func fetch(_ key: String, validator: String?) async throws -> Fetched<Place> {
    for await _ in gate { break }
    return .value(place)
  }
}

private let freshness = FreshnessPolicy(fresh: .seconds(36_000), usable: .seconds(72_000))

let cacheScenarios = [
  Scenario(
    name: "cache-hit", group: .cache, title: "A fresh value from the cache", operation: "hit", base: "dictionary in an actor",
    goals: [Goal("Larder cache", .atMost(0.4))],
    notes: ["The dictionary has no ages, no limits and no source."]
  ) { bench in
    let places = Array(try bench.places().prefix(1_000))
    let keys = places.map(\.slug)
    let count = bench.operations(20_000)
    var contenders: [Contender] = []
    if bench.wants(.memory) {
      let cache = try await CachedRepository.inMemory(freshness: freshness, source: PlaceSource(place: places[0]))
      for key in keys { _ = try await cache.value(for: key) }
      contenders.append(
        .timed("Larder cache", .larder, operations: count) { _ in
          for number in 0..<count { _ = try await cache.value(for: keys[number % keys.count]) }
        })
    }
    if bench.wants(.dictionaryActor) {
      let dictionary = DictionaryStore(places)
      contenders.append(
        .repeated(.dictionaryActor, "", count) { number in try expect(await dictionary.find(places[number % places.count].id)) })
    }
    return try await bench.race(contenders, rounds: bench.rounds(11))
  },
  Scenario(
    name: "cache-misses", group: .cache, title: "10,000 tasks that miss the same key at once", operation: "10,000 misses",
    base: "the tasks alone", goals: [Goal("Larder cache", .atMostTimes(1.5, of: "the tasks alone"))],
    notes: ["One request answers them all. The limit is as many tasks that wait for the value of one task."]
  ) { bench in
    let place = try bench.places()[0]
    let count = bench.operations(10_000)
    var contenders: [Contender] = []
    if bench.wants(.memory) {
      contenders.append(
        .timed("Larder cache", .larder) { round in
          let (gate, open) = AsyncStream<Void>.makeStream()
          let cache = try await CachedRepository<String, Place>.inMemory(
            freshness: freshness, source: GatedSource(place: place, gate: gate))
          try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<count { group.addTask { _ = try await cache.value(for: "a") } }
            group.addTask { open.yield() }
            try await group.waitForAll()
          }
          try await cache.close()
        })
    }
    if bench.wants(.write) {
      contenders.append(
        .timed("the tasks alone", .limit) { _ in
          let (gate, open) = AsyncStream<Void>.makeStream()
          let request = Task<Place, Never> {
            for await _ in gate { break }
            return place
          }
          await withTaskGroup(of: Void.self) { group in
            for _ in 0..<count { group.addTask { _ = await request.value } }
            group.addTask { open.yield() }
          }
        })
    }
    return try await bench.race(contenders, rounds: bench.rounds(9))
  },
]
