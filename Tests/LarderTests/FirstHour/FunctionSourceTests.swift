import Foundation
import LarderSQLite
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import Larder

/// A cache whose source is one function.
@Suite("A closure as the source of a cache", .timeLimit(.minutes(15))) struct FunctionSourceTests {
  private struct Forecast: Codable, Sendable, Equatable {
    var waves: Int
  }

  @Sendable private static func forecast(_ spot: Int) async throws -> Forecast {
    guard spot >= 0 else { throw Trouble(isTransient: false, name: "no such spot") }
    return Forecast(waves: spot)
  }

  /// Key and value follow from the closure alone, as in the guide.
  @Test func oneLineOpensACacheInEveryPlace() async throws {
    let directory = try TemporaryDirectory()
    let file = try await CachedRepository.open(jsonFile: directory.file("a.json"), freshness: .hours(1)) { spot in
      try await Self.forecast(spot)
    }
    let database = try await CachedRepository.open(sqliteFile: directory.file("a.sqlite"), freshness: .hours(1)) { spot in
      try await Self.forecast(spot)
    }
    let memory = try await CachedRepository.inMemory(freshness: .hours(1)) { (spot: Int) in
      let found = try await Self.forecast(spot)
      return found
    }
    let storage = try await LocalRepository<CachedEntry<Int, Forecast>>(inMemory: .init())
    let over = CachedRepository(storage: storage, freshness: .hours(1), fetch: Self.forecast)
    for cache in [file, database, memory, over] {
      let fetched = try await cache.value(for: 7)
      #expect(fetched.value == Forecast(waves: 7) && fetched.origin == .remote && fetched.state == .fresh)
      #expect(try await cache.value(for: 7).origin == .memory)
      try await cache.close()
    }
    let again = try await CachedRepository.open(jsonFile: directory.file("a.json"), freshness: .hours(1), fetch: Self.forecast)
    #expect(try await again.value(for: 7, policy: .cacheOnly).origin == .disk)
    try await again.close()
  }

  @Test func theFunctionIsCalledWhenAValueIsNoLongerFresh() async throws {
    let clock = ManualClock()
    let calls = Mutex(0)
    let cache = try await CachedRepository.inMemory(freshness: FreshnessPolicy(fresh: .hours(1), jitter: 0), clock: clock) {
      (key: String) in
      calls.withLock { $0 += 1 }
      return key.count
    }
    for _ in 0..<3 { #expect(try await cache.value(for: "abc").value == 3) }
    #expect(calls.withLock { $0 } == 1)
    clock.advance(by: .hours(1))
    #expect(try await cache.value(for: "abc").origin == .remote)
    #expect(calls.withLock { $0 } == 2)
  }

  @Test func aThrownErrorKeepsItsMeaning() async throws {
    let calls = Mutex(0)
    let cache = try await CachedRepository.inMemory(
      freshness: .hours(1), retry: RetryPolicy(attempts: 3, base: .zero, cap: .zero), clock: ManualClock()
    ) { (key: String) -> Int in
      calls.withLock { $0 += 1 }
      throw Trouble(isTransient: key == "again", name: key)
    }
    let final = await failure { try await cache.value(for: "never") } as? Trouble
    #expect(final?.name == "never" && calls.withLock { $0 } == 1)
    let transient = await failure { try await cache.value(for: "again") } as? Trouble
    #expect(transient?.name == "again" && calls.withLock { $0 } == 4)
  }

  @Test func freshnessAloneIsEnough() {
    let hour = FreshnessPolicy(fresh: .seconds(3_600))
    #expect(hour == FreshnessPolicy(fresh: .seconds(3_600), usable: .hours(48), negative: .seconds(60), jitter: 0.1))
    #expect(FreshnessPolicy(fresh: .hours(72)).usable == .hours(72))
    #expect(FreshnessPolicy(fresh: .hours(1), negative: .zero, jitter: 0).negative == .zero)
    #expect(FreshnessPolicy.seconds(3_600) == hour && .minutes(60) == hour && .hours(1) == hour)
    #expect(FreshnessPolicy.days(3) == FreshnessPolicy(fresh: .hours(72)))
    #expect(FreshnessPolicy.days(Int.max).fresh == .longest && FreshnessPolicy.minutes(-1).fresh == .zero)
    #expect(FreshnessPolicy.seconds(UInt64.max).fresh == .longest)
  }
}
