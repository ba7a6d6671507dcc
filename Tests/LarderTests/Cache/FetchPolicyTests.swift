import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct FetchPolicyTests {
  /// A world in which "a" was fetched as 1, and will be 2 from now on.
  private func world(_ freshness: FreshnessPolicy = CacheWorld.freshness) async throws -> CacheWorld {
    let world = try await CacheWorld(freshness: freshness, source: ScriptedSource { _, _ in .value(2) })
    world.source.answer("a", .success(.value(1)))
    let first = try await world.cache.value(for: "a")
    #expect(first.value == 1)
    #expect(first.origin == .remote)
    #expect(first.state == .fresh)
    #expect(first.age == .zero)
    return world
  }

  @Test func aFreshValueIsServedWithoutAsking() async throws {
    let world = try await world()
    world.clock.advance(by: .seconds(3599))
    let cached = try await world.cache.value(for: "a")
    #expect(cached.value == 1)
    #expect(cached.state == .fresh)
    #expect(cached.origin == .memory)
    #expect(cached.age == .seconds(3599))
    #expect(world.source.callCount == 1)
    #expect(world.cache.statistics.hits == 1)
  }

  @Test func cacheFirstRefreshesAStaleValueBeforeItAnswers() async throws {
    let world = try await world()
    world.clock.advance(by: .seconds(3600))
    let cached = try await world.cache.value(for: "a")
    #expect(cached.value == 2)
    #expect(cached.origin == .remote)
    #expect(cached.state == .fresh)
  }

  @Test func cacheFirstServesAStaleValueWithTheErrorOfTheRefresh() async throws {
    let world = try await world()
    world.clock.advance(by: .hours(2))
    world.source.answer("a", .failure(Trouble()))
    let cached = try await world.cache.value(for: "a")
    #expect(cached.value == 1)
    #expect(cached.state == .stale)
    #expect(cached.age == .hours(2))
    #expect(cached.refreshError as? Trouble == Trouble())
    #expect(world.cache.statistics.staleServes == 1)
    #expect(world.cache.statistics.fetchErrors == 1)
  }

  @Test func aStaleValueIsNotServedForAnErrorAfterItsUsableWindow() async throws {
    let world = try await world()
    world.clock.advance(by: .hours(48))
    world.source.answer("a", .failure(Trouble()))
    let error = await failure { try await world.cache.value(for: "a") }
    #expect(error as? Trouble == Trouble())
  }

  @Test func aValueThatExpiresWhileTheRefreshFailsIsNotServed() async throws {
    let world = try await world()
    world.clock.advance(by: .hours(47))
    world.source.answer("a", .failure(Trouble()))
    world.source.hold()
    let task = Task { try await world.cache.value(for: "a") }
    await world.source.waitForHeld(1)
    world.clock.advance(by: .hours(1))
    world.source.release()
    #expect(await failure { try await task.value } as? Trouble == Trouble())
  }

  @Test func aPolicyWithoutAStaleWindowServesNothingStale() async throws {
    let world = try await world(FreshnessPolicy(fresh: .seconds(300), usable: .seconds(300), jitter: 0))
    world.clock.advance(by: .seconds(300))
    world.source.answer("a", .failure(Trouble()))
    #expect(await failure { try await world.cache.value(for: "a") } is Trouble)
  }

  @Test func staleWhileRevalidateAnswersAtOnceAndRefreshesBehind() async throws {
    let world = try await world()
    world.clock.advance(by: .hours(2))
    world.source.hold()
    let cached = try await world.cache.value(for: "a", policy: .staleWhileRevalidate)
    #expect(cached.value == 1)
    #expect(cached.state == .stale)
    #expect(cached.refreshError == nil)
    // Many more ask meanwhile.
    for _ in 0..<100 { _ = try await world.cache.value(for: "a", policy: .staleWhileRevalidate) }
    await world.source.waitForHeld(1)
    world.source.release()
    try await world.settle()
    #expect(world.source.callCount == 2)
    let refreshed = try await world.cache.value(for: "a", policy: .staleWhileRevalidate)
    #expect(refreshed.value == 2)
    #expect(refreshed.state == .fresh)
  }

  @Test func aCallerWhoLeavesDoesNotCancelARefreshInTheBackground() async throws {
    let world = try await world()
    world.clock.advance(by: .hours(2))
    world.source.hold()
    _ = try await world.cache.value(for: "a", policy: .staleWhileRevalidate)
    await world.source.waitForHeld(1)
    let joined = Task { try await world.cache.value(for: "a", policy: .networkOnly) }
    try await until { world.waiterCount == 1 }
    joined.cancel()
    #expect(await failure { try await joined.value } is CancellationError)
    world.source.release()
    try await world.settle()
    #expect(world.source.cancelledCount == 0)
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).value == 2)
  }

  @Test func staleWhileRevalidateWaitsForAnExpiredValue() async throws {
    let world = try await world()
    world.clock.advance(by: .hours(48))
    #expect(try await world.cache.value(for: "a", policy: .staleWhileRevalidate).value == 2)
  }

  @Test func manyStaleKeysAreRefreshedBehindWithAnUpperBound() async throws {
    let world = try await CacheWorld()
    let keys = (0..<20).map { "key \($0)" }
    await world.cache.prefetch(keys)
    world.clock.advance(by: .hours(2))
    world.source.hold()
    let before = world.source.callCount
    let results = await world.cache.values(for: keys, policy: .staleWhileRevalidate, maxConcurrentFetches: 3)
    #expect(results.values.allSatisfy { (try? $0.get().state) == .stale })
    await world.source.waitForHeld(3)
    world.source.release()
    await world.source.waitForCalls(before + 20)
    try await world.settle()
    #expect(world.source.mostAtOnce <= 6)
    #expect(world.cache.statistics.staleServes == 20)
    #expect(try await world.cache.value(for: "key 0", policy: .cacheOnly).state == .fresh)
  }

  @Test func networkFirstAsksEvenForAFreshValue() async throws {
    let world = try await world()
    #expect(try await world.cache.value(for: "a", policy: .networkFirst(timeout: .seconds(5))).value == 2)
  }

  @Test func networkFirstServesWhatIsStoredAfterItsTimeoutAndTheFetchGoesOn() async throws {
    let world = try await world()
    world.clock.advance(by: .hours(2))
    world.source.hold()
    let task = Task { try await world.cache.value(for: "a", policy: .networkFirst(timeout: .seconds(5))) }
    await world.source.waitForHeld(1)
    await world.clock.waitForSleepers()
    world.clock.advance(by: .seconds(5))
    let cached = try await task.value
    #expect(cached.value == 1)
    #expect(cached.state == .stale)
    #expect(cached.refreshError as? CacheError == .timedOut(.seconds(5)))
    world.source.release()
    try await world.settle()
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).value == 2)
    #expect(world.source.cancelledCount == 0)
  }

  @Test func aFetchThatGoesOnAfterATimeoutIsNotCancelledByWhoLeavesLater() async throws {
    let world = try await world()
    world.source.hold()
    let first = Task { try await world.cache.value(for: "a", policy: .networkFirst(timeout: .seconds(5))) }
    let second = Task { try await world.cache.value(for: "a", policy: .networkOnly) }
    try await until { world.waiterCount == 2 }
    await world.clock.waitForSleepers()
    world.clock.advance(by: .seconds(5))
    #expect(try await first.value.value == 1)
    second.cancel()
    #expect(await failure { try await second.value } is CancellationError)
    world.source.release()
    try await world.settle()
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).value == 2)
  }

  @Test func networkFirstServesWhatIsStoredWhenTheSourceFails() async throws {
    let world = try await world()
    world.source.answer("a", .failure(Trouble()))
    let cached = try await world.cache.value(for: "a", policy: .networkFirst(timeout: .seconds(5)))
    #expect(cached.value == 1)
    #expect(cached.state == .fresh)
    #expect(cached.refreshError is Trouble)
    #expect(world.clock.sleeperCount == 0)
  }

  @Test func networkFirstWithNothingStoredWaitsForTheSource() async throws {
    let world = try await CacheWorld()
    world.source.hold()
    let task = Task { try await world.cache.value(for: "four", policy: .networkFirst(timeout: .seconds(5))) }
    await world.source.waitForHeld(1)
    world.clock.advance(by: .seconds(60))
    world.source.release()
    #expect(try await task.value.value == 4)
  }

  @Test func networkOnlyNeverServesWhatIsStored() async throws {
    let world = try await world()
    #expect(try await world.cache.value(for: "a", policy: .networkOnly).value == 2)
    world.source.answer("a", .failure(Trouble()))
    #expect(await failure { try await world.cache.value(for: "a", policy: .networkOnly) } is Trouble)
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).value == 2)
  }

  @Test func cacheOnlyNeverAsks() async throws {
    let world = try await world()
    #expect(await failure { try await world.cache.value(for: "b", policy: .cacheOnly) } as? CacheError == .notCached)
    world.clock.advance(by: .hours(2))
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).state == .stale)
    world.clock.advance(by: .hours(46))
    #expect(await failure { try await world.cache.value(for: "a", policy: .cacheOnly) } as? CacheError == .notCached)
    #expect(world.source.callCount == 1)
  }

  @Test func thereIsNoneIsBelievedForItsWindow() async throws {
    let world = try await CacheWorld(source: ScriptedSource { _, _ in .absent(reason: "not covered") })
    let since = world.clock.now
    for policy in [FetchPolicy.cacheFirst, .staleWhileRevalidate, .cacheOnly] {
      let error = await failure { try await world.cache.value(for: "a", policy: policy) }
      #expect(error as? CacheError == .absent(reason: "not covered", since: since))
    }
    #expect(world.source.callCount == 1)
    #expect(world.cache.statistics.negativeHits == 2)
    world.clock.advance(by: .seconds(60))
    _ = await failure { try await world.cache.value(for: "a") }
    #expect(world.source.callCount == 2)
  }

  @Test func anExplicitRefreshBypassesThereIsNone() async throws {
    for policy in [FetchPolicy.networkOnly, .networkFirst(timeout: .seconds(1))] {
      let world = try await CacheWorld()
      world.source.answer("four", .success(.absent(reason: "not yet")))
      _ = await failure { try await world.cache.value(for: "four") }
      #expect(try await world.cache.value(for: "four", policy: policy).value == 4)
      #expect(try await world.cache.value(for: "four").value == 4)
    }
  }

  @Test func thereIsNoneIsBelievedForAsLongAsTheSourceSays() async throws {
    let world = try await CacheWorld()
    world.source.answer("a", .success(.absent(reason: "inland", lifetime: .hours(24 * 7))))
    _ = await failure { try await world.cache.value(for: "a") }
    // Also by the next start.
    let next = world.restarted()
    world.clock.advance(by: .hours(24 * 7 - 1))
    #expect(await failure { try await world.cache.value(for: "a") } is CacheError)
    #expect(await failure { try await next.value(for: "a") } is CacheError)
    #expect(world.source.callCount == 1)
    world.clock.advance(by: .hours(1))
    #expect(try await world.cache.value(for: "a").value == 1)
  }

  @Test func thereIsNoneTakesThePlaceOfAnOlderValue() async throws {
    let world = try await world()
    world.source.answer("a", .success(.absent(reason: "gone")))
    _ = await failure { try await world.cache.value(for: "a", policy: .networkOnly) }
    #expect(await failure { try await world.cache.value(for: "a") } is CacheError)
  }

  @Test func aConditionalRefreshKeepsTheValueAndRenewsItsAge() async throws {
    let world = try await CacheWorld(
      source: ScriptedSource { key, validator in validator == "v1" ? .notModified() : .value(key.count, validator: "v1") })
    _ = try await world.cache.value(for: "four")
    world.clock.advance(by: .hours(2))
    let cached = try await world.cache.value(for: "four")
    #expect(cached.value == 4)
    #expect(cached.state == .fresh)
    #expect(cached.fetchedAt == world.clock.now)
    #expect(world.source.calls.map(\.validator) == [nil, "v1"])
    #expect(world.cache.statistics.notModified == 1)
    // An expired value still saves its transfer.
    world.clock.advance(by: .hours(100))
    #expect(try await world.cache.value(for: "four").state == .fresh)
    #expect(world.source.calls.last?.validator == "v1")
  }

  @Test func notModifiedWithoutAValidatorIsAnError() async throws {
    let world = try await CacheWorld(source: ScriptedSource { _, _ in .notModified() })
    #expect(await failure { try await world.cache.value(for: "a") } as? CacheError == .nothingToRevalidate)
    #expect(world.source.callCount == 1)
  }

  @Test func aSourceThatFailsIsAskedOnceInATimeByRefreshesInTheBackground() async throws {
    let switches = Notes()  // down after the first, up again after the second
    let source = ScriptedSource<String, Int> { key, _ in
      if switches.numbers.count == 1 { throw Trouble() }
      return .value(key.count)
    }
    let world = try await CacheWorld(retry: RetryPolicy(attempts: 1, cap: .seconds(30)), source: source)
    _ = try await world.cache.value(for: "a")
    world.clock.advance(by: .hours(2))
    switches.add(1)
    for round in 1...3 {
      for _ in 0..<50 {
        #expect(try await world.cache.value(for: "a", policy: .staleWhileRevalidate).value == 1)
        _ = await world.cache.values(for: ["a"], policy: .staleWhileRevalidate)
        try await world.settle()
      }
      await world.source.waitForCalls(round + 1)
      // The pause begins when the failure has come, so the clock stands until then.
      try await world.settle()
      #expect(world.source.callCount == round + 1)
      world.clock.advance(by: .seconds(30))
    }
    // A success ends it. On a busy machine a refresh of the last round may run only now, and its failure begins another pause.
    switches.add(2)
    repeat {
      world.clock.advance(by: .seconds(30))
      _ = try await world.cache.value(for: "a", policy: .staleWhileRevalidate)
      try await world.settle()
      await Task.yield()
    } while try await world.cache.value(for: "a", policy: .cacheOnly).state != .fresh
    world.source.answer("a", .failure(Trouble()))
    _ = await failure { try await world.cache.value(for: "a", policy: .networkOnly) }
    #expect(try await world.cache.value(for: "a", policy: .networkOnly).value == 1)
  }

  @Test func moreKeysThanAreRememberedAreAskedForOnceInATime() async throws {
    let world = try await CacheWorld(retry: RetryPolicy(attempts: 1, cap: .seconds(30)))
    let switches = Notes()  // down after the first, up again after the second
    let source = ScriptedSource<String, Int> { key, _ in
      if switches.numbers.count == 1 { throw Trouble() }
      return .value(key.count)
    }
    let cache = Cache(
      storage: world.storage, freshness: CacheWorld.freshness, eviction: .none, retry: RetryPolicy(attempts: 1, cap: .seconds(30)),
      clock: world.clock, source: source, random: { 0 })
    let keys = (0..<1_200).map { "key \($0)" }
    await cache.prefetch(keys)
    #expect(source.callCount == 1_200)
    world.clock.advance(by: .hours(2))
    switches.add(1)
    for round in 1...2 {
      for _ in 0..<2 {
        for key in keys { #expect(try await cache.value(for: key, policy: .staleWhileRevalidate).state == .stale) }
        try await until { cache.flights.isEmpty }
      }
      // Those that were asked for after the table was full may have found every key held.
      #expect(source.callCount <= 1_200 * (round + 1))
      #expect(source.callCount > 1_200 + 1_000 * (round - 1))
      world.clock.advance(by: .seconds(30))
    }
    switches.add(2)
    _ = try await cache.value(for: "key 0", policy: .staleWhileRevalidate)
    try await until { cache.flights.isEmpty }
    #expect(try await cache.value(for: "key 0", policy: .cacheOnly).state == .fresh)
  }
}
