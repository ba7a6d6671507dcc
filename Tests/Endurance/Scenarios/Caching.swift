import Foundation
import Larder
import LarderTesting

/// Values of a cache: answered, fetched, failed, shared, announced, given up.
enum Caching {
  struct Unreachable: Error {}
  typealias Cache = CachedRepository<Int, Jar>

  private static let freshness = FreshnessPolicy(fresh: .seconds(60), usable: .hours(1))

  private static func cache(
    _ eviction: EvictionPolicy = .none, clock: ManualClock = ManualClock(), retry: RetryPolicy = .never,
    source: some RemoteSource<Int, Jar>
  ) async throws -> Cache {
    let storage = try await LocalRepository<CachedEntry<Int, Jar>>(inMemory: .init("cache"), options: .init(limits: .init(tombstones: 50)))
    return Cache(storage: storage, freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: source)
  }

  static let scenarios = [
    Scenario("one cached value", uses: 500_000) { _ in
      let cache = try await cache(source: Answering())
      return Subject { _ in
        try expect(try await cache.value(for: 3).value.id == 3, "jar 3")
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    Scenario("one value, fetched each time") { _ in
      let cache = try await cache(source: Answering())
      return Subject { _ in
        try expect(try await cache.value(for: 3, policy: .networkOnly).origin == .remote, "an answer of the source")
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    Scenario("one value, expired each time") { _ in
      let clock = ManualClock()
      let cache = try await cache(clock: clock, source: Answering())
      return Subject { _ in
        clock.advance(by: .seconds(100))
        try expect(try await cache.value(for: 3).state == .fresh, "a fresh value")
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    Scenario("updates of one key") { _ in
      let cache = try await cache(source: Answering())
      let updates = Follower(cache.updates(for: 3).makeAsyncIterator())
      return Subject { _ in
        _ = try await cache.value(for: 3, policy: .networkOnly)
        try expect(try await updates.next()?.value.id == 3, "jar 3")
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    Scenario("updates, dropped", uses: 500_000) { _ in
      let cache = try await cache(source: Answering())
      return Subject { number in
        let updates = cache.updates(for: number)
        if number % 2 == 0 { _ = updates.makeAsyncIterator() }
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    Scenario("updates, cancelled", uses: 200_000) { _ in
      let cache = try await cache(source: Answering())
      _ = try await cache.value(for: 3)
      return Subject { number in
        let updates = cache.updates(for: number % 2 == 0 ? 3 : number)
        try await cancelled { for await _ in updates {} }
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    Scenario("new keys, removed later") { _ in
      let cache = try await cache(source: Answering())
      return Subject { number in
        _ = try await cache.value(for: number)
        if number >= 50 { try await cache.invalidate(number - 50) }
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    // In a short run, most of the 50 entries come after the first tenth. An entry takes about 2 KB.
    Scenario("new keys, evicted", bytes: 128 << 10) { _ in
      let cache = try await cache(.init(countLimit: 50), source: Answering())
      return Subject {
        try expect(try await cache.value(for: $0).value.id == $0, "the jar")
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    Scenario("one failing flight") { _ in
      let cache = try await cache(source: Failing())
      return Subject { number in
        do {
          _ = try await cache.value(for: 3, policy: .networkOnly)
          throw WrongAnswer(description: "expected a failure")
        } catch is Unreachable {}
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    // Up to a thousand keys are held off.
    Scenario("new keys, failing", bytes: 256 << 10) { _ in
      let cache = try await cache(source: Failing())
      return Subject { number in
        do { _ = try await cache.value(for: number) } catch is Unreachable {}
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    Scenario("shared flight") { _ in
      let cache = try await cache(source: Answering())
      return Subject { _ in
        await withTaskGroup(of: Void.self) { group in
          for _ in 0..<8 { group.addTask { _ = try? await cache.value(for: 3, policy: .networkOnly) } }
        }
        try expect(try await cache.value(for: 3).state == .fresh, "a fresh value")
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    // The source keeps a list of its calls.
    Scenario("flights, cancelled", bytesPerUse: 40) { _ in
      let source = ScriptedSource<Int, Jar> { key, _ in .value(Jar(key)) }
      source.hold()
      let cache = try await cache(source: source)
      return Subject { number in
        try await cancelled { _ = try await cache.value(for: number % 3 == 0 ? 3 : number) }
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        source.release()
        try await cache.close()
      }
    },
    Scenario("prefetch") { _ in
      let cache = try await cache(source: Answering())
      return Subject { number in
        await cache.prefetch(Array(0..<10))
        if number % 10 == 0 { try await cache.removeAll() }
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
  ]

  /// A source that always answers.
  struct Answering: RemoteSource {
    func fetch(_ key: Int, validator: String?) async throws -> Fetched<Jar> { .value(Jar(key), validator: "\(key)") }
  }

  /// A source that never does.
  struct Failing: RemoteSource {
    func fetch(_ key: Int, validator: String?) async throws -> Fetched<Jar> { throw Unreachable() }
  }
}
