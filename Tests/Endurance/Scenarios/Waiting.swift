import Foundation
import Larder
import LarderTesting

/// Clocks, limits and gathered requests: waits that end, and waits that are cancelled.
enum Waiting {
  static let scenarios = [
    Scenario("manual clock", uses: 500_000) { _ in
      let clock = ManualClock()
      return Subject { _ in
        async let slept: Void = clock.sleep(for: .seconds(1))
        await clock.waitForSleepers()
        clock.advance(by: .seconds(1))
        try await slept
      }
    },
    Scenario("manual clock, cancelled", uses: 500_000) { _ in
      let clock = ManualClock()
      return Subject { _ in
        try await cancelled { try await clock.sleep(for: .seconds(1)) }
      } end: {
        try expect(clock.sleeperCount == 0, "no sleeper")
      }
    },
    Scenario("concurrency limit", uses: 500_000) { _ in
      let limit = ConcurrencyLimit(1)
      return Subject { number in
        async let first = limit.withPermit { number }
        async let second = limit.withPermit { number }
        try expect(try await first + second == 2 * number, "both answers")
      }
    },
    // The permit stays taken: whoever waits leaves only because it is cancelled.
    Scenario("concurrency limit, cancelled", uses: 500_000) { _ in
      let limit = ConcurrencyLimit(1)
      let (gate, opened) = AsyncStream.makeStream(of: Void.self)
      let (taken, isTaken) = AsyncStream.makeStream(of: Void.self)
      let holder = Task {
        try await limit.withPermit {
          isTaken.finish()
          for await _ in gate {}
        }
      }
      for await _ in taken {}
      return Subject { _ in
        try await cancelled { try await limit.withPermit {} }
      } end: {
        try expect(limit.waitingCount == 0, "no task that waits")
        opened.finish()
        try await holder.value
      }
    },
    Scenario("token bucket", uses: 500_000) { _ in
      let clock = ManualClock()
      let bucket = TokenBucket(2, per: .seconds(2), clock: clock)
      return Subject { number in
        clock.advance(by: .seconds(1))
        try await bucket.take()
        if number % 3 == 0 {
          do { try await bucket.take(2) } catch is CacheError {}
          clock.advance(by: .seconds(2))
        }
      }
    },
    Scenario("token bucket, cancelled", uses: 200_000) { _ in
      let clock = ManualClock()
      let bucket = TokenBucket(1, per: .seconds(2), maximumWait: .seconds(60), clock: clock)
      return Subject { _ in
        clock.advance(by: .seconds(2))
        try await bucket.take()
        try await cancelled { try await bucket.take() }
      }
    },
    Scenario("circuit breaker", uses: 500_000) { _ in
      let clock = ManualClock()
      let breaker = CircuitBreaker(failureLimit: 2, coolDown: .seconds(1), maximumCoolDown: .seconds(2), clock: clock)
      return Subject { number in
        do {
          _ = try await breaker.run { () throws -> Int in
            if number % 5 < 3 { throw HostDown() }
            return number
          }
        } catch is HostDown {
        } catch is CacheError {
          clock.advance(by: .seconds(3))
        }
      }
    },
    Scenario("gathered requests", weight: 5) { _ in
      let limits = HostLimits(concurrency: ConcurrencyLimit(2), breaker: CircuitBreaker())
      let cache = CachedRepository(
        storage: try await LocalRepository(inMemory: .init(), options: .init(limits: .init(tombstones: 50))),
        freshness: .init(fresh: .seconds(60), usable: .hours(1)), source: Batch().limited(by: limits))
      return Subject { number in
        let answers = await cache.values(for: Array(0..<5), policy: .networkOnly)
        try expect(answers.count == 5, "5 answers")
        if number % 4 == 0 { try await cancelled { _ = await cache.values(for: Array(10..<20), policy: .networkOnly) } }
        if number % 50 == 0 { try await cache.removeAll() }
      } settle: {
        try await cache.storage.checkpoint()
      } end: {
        try await cache.close()
      }
    },
    // It keeps a list of its calls.
    Scenario("scripted source", bytesPerUse: 64) { _ in
      let source = ScriptedSource<Int, Int> { key, _ in .value(key) }
      return Subject { number in
        source.answer(1, .success(.value(number)))
        _ = try await source.fetch(1, validator: nil)
        source.hold()
        try await cancelled { _ = try await source.fetch(2, validator: nil) }
        source.release()
      }
    },
  ]

  /// An error of a host.
  struct HostDown: RemoteSourceError {
    var isTransient: Bool { true }
    var countsAgainstBreaker: Bool { true }
  }

  /// A source of several keys a request.
  struct Batch: BatchRemoteSource {
    var maxKeysPerRequest: Int { 3 }
    func fetch(_ requests: [FetchRequest<Int>]) async throws -> [Int: Result<Fetched<Jar>, any Error>] {
      Dictionary(requests.map { ($0.key, .success(.value(Jar($0.key)))) }) { first, _ in first }
    }
  }
}
