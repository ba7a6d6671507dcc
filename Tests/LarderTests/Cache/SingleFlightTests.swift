import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct SingleFlightTests {
  @Test func tenThousandCallersOfAMissingKeyMakeOneFetch() async throws {
    let world = try await CacheWorld()
    world.source.hold()
    let values = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<10_000 { group.addTask { try await world.cache.value(for: "four").value } }
      try await until { world.waiterCount == 10_000 }
      world.source.release()
      return try await group.reduce(into: [Int]()) { $0.append($1) }
    }
    #expect(values == Array(repeating: 4, count: 10_000))
    #expect(world.source.callCount == 1)
    #expect(world.cache.statistics.misses == 10_000)
  }

  @Test func callersWhoComeWhenAFetchLandsDoNotBeginAnother() async throws {
    // The source answers at once, so callers come before, while and after the fetch lands.
    for _ in 0..<20 {
      let world = try await CacheWorld()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<200 { group.addTask { _ = try? await world.cache.value(for: "four") } }
      }
      #expect(world.source.callCount == 1)
    }
  }

  @Test func aCallerWhoHasLookedBeforeAFetchLandedLooksAgain() async throws {
    let world = try await CacheWorld()
    let lookup = world.cache.lookup("a")
    _ = try await world.cache.value(for: "a")
    guard case .changed = await world.cache.joinFlight(of: "a", after: lookup, timeout: nil) else {
      Issue.record("it began another fetch")
      return
    }
    #expect(world.source.callCount == 1)
  }

  @Test func aCancelledCallerLeavesTheOthers() async throws {
    let world = try await CacheWorld()
    world.source.hold()
    let first = Task { try await world.cache.value(for: "four").value }
    let second = Task { try await world.cache.value(for: "four").value }
    try await until { world.waiterCount == 2 }
    first.cancel()
    let error = await failure { try await first.value }
    #expect(error is CancellationError)
    #expect(world.source.cancelledCount == 0)
    world.source.release()
    #expect(try await second.value == 4)
    #expect(world.source.callCount == 1)
  }

  @Test func theLastCallerToLeaveCancelsTheFetch() async throws {
    let world = try await CacheWorld()
    world.source.hold()
    let tasks = (0..<3).map { _ in Task { try await world.cache.value(for: "four").value } }
    try await until { world.waiterCount == 3 }
    await world.source.waitForHeld(1)
    for task in tasks { task.cancel() }
    await world.source.waitForCancelled(1)
    for task in tasks { #expect(await failure { try await task.value } is CancellationError) }
    world.source.release()
    #expect(try await world.cache.value(for: "four").value == 4)
    #expect(world.source.callCount == 2)
  }

  @Test func aCallerWhoComesAfterTheLastHasLeftBeginsAnew() async throws {
    let world = try await CacheWorld()
    // This source does not hear that it is cancelled, and brings an old answer later.
    let gate = ConcurrencyLimit(1)
    try await gate.acquire()
    let slow = ScriptedSource<String, Int> { _, _ in
      await Task { try? await gate.acquire() }.value
      return .value(1)
    }
    let cache = Cache(
      storage: world.storage, freshness: CacheWorld.freshness, retry: .never, clock: world.clock, source: slow)
    let first = Task { try await cache.value(for: "a").value }
    await slow.waitForCalls(1)
    first.cancel()
    #expect(await failure { try await first.value } is CancellationError)
    slow.answer("a", .success(.value(2)))
    #expect(try await cache.value(for: "a").value == 2)
    gate.release()
    try await until { gate.waitingCount == 0 }
    try await until { cache.flights.isEmpty }
    #expect(try await cache.value(for: "a", policy: .cacheOnly).value == 2)
  }

  @Test func anEntryInvalidatedDuringAFlightIsNotResurrected() async throws {
    let world = try await CacheWorld()
    world.source.hold()
    let task = Task { try await world.cache.value(for: "four").value }
    await world.source.waitForHeld(1)
    try await world.cache.invalidate("four")
    world.source.release()
    #expect(try await task.value == 4)  // who asked before gets what it asked for
    try await world.settle()
    #expect(try await world.storage.find(by: "four") == nil)
    let error = await failure { try await world.cache.value(for: "four", policy: .cacheOnly) }
    #expect(error as? CacheError == .notCached)
  }

  @Test func anEntryInvalidatedWhileItIsStoredIsNotResurrected() async throws {
    let world = try await CacheWorld()
    world.disk.hold(.commit)
    let task = Task { try await world.cache.value(for: "four").value }
    await world.disk.waitUntilHeld(.commit)
    let invalidation = Task { try await world.cache.invalidate("four") }
    try await until { world.storage.core.waitingWriteCount == 1 }
    world.disk.release(.commit)
    try await invalidation.value
    #expect(try await task.value == 4)
    #expect(try await world.storage.find(by: "four") == nil)
  }

  @Test func aFetchThatWasInvalidatedIsNotJoined() async throws {
    let world = try await CacheWorld()
    world.source.answer("a", .success(.value(1)), .success(.value(2)))
    world.source.hold()
    let old = Task { try await world.cache.value(for: "a").value }
    await world.source.waitForHeld(1)
    try await world.cache.invalidate("a")
    let new = Task { try await world.cache.value(for: "a").value }
    await world.source.waitForHeld(2)
    world.source.release()
    #expect(try await old.value == 1)
    #expect(try await new.value == 2)
    try await world.settle()
    #expect(try await world.storage.find(by: "a")?.value == 2)
  }

  @Test func removingEverythingKeepsOutWhatIsBeingFetched() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "one")
    world.source.hold()
    let task = Task { try await world.cache.value(for: "four").value }
    await world.source.waitForHeld(1)
    try await world.cache.removeAll()
    world.source.release()
    #expect(try await task.value == 4)
    try await world.settle()
    #expect(try await world.storage.count() == 0)
  }

  @Test func aFailureIsGivenToEverybodyAndNotStored() async throws {
    let world = try await CacheWorld()
    world.source.answer("four", .failure(Trouble()))
    world.source.hold()
    let tasks = (0..<10).map { _ in Task { try await world.cache.value(for: "four").value } }
    try await until { world.waiterCount == 10 }
    world.source.release()
    for task in tasks { #expect(await failure { try await task.value } as? Trouble == Trouble()) }
    #expect(world.source.callCount == 1)
    #expect(try await world.cache.value(for: "four").value == 4)
  }

  @Test func manyKeysAreFetchedWithAnUpperBound() async throws {
    let world = try await CacheWorld()
    world.source.hold()
    let keys = (0..<50).map { "key \($0)" }
    let task = Task { await world.cache.values(for: keys + keys, maxConcurrentFetches: 4) }
    await world.source.waitForHeld(4)
    world.source.release()
    let results = await task.value
    #expect(results.count == 50)
    #expect(try results["key 7"]?.get().value == 5)
    #expect(world.source.callCount == 50)
    #expect(world.source.mostAtOnce <= 4)
  }

  @Test func oneFailureAmongManyKeysFailsOnlyItself() async throws {
    let world = try await CacheWorld()
    world.source.answer("b", .failure(Trouble()))
    let results = await world.cache.values(for: ["a", "b", "c"])
    #expect(try results["a"]?.get().value == 1)
    #expect(try results["c"]?.get().value == 1)
    #expect(throws: Trouble.self) { try results["b"]?.get() }
  }

  @Test func prefetchBringsWhatIsNotFresh() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    await world.cache.prefetch(["a", "bb"])
    #expect(world.source.callCount == 2)
    #expect(try await world.cache.value(for: "bb", policy: .cacheOnly).value == 2)
  }

  @Test func aCallerWhoIsCancelledDoesNotReachTheSource() async throws {
    let world = try await CacheWorld()
    for policy in [FetchPolicy.cacheFirst, .networkOnly, .networkFirst(timeout: .seconds(1)), .staleWhileRevalidate] {
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await world.cache.value(for: "a", policy: policy)
      }
      #expect(await failure { try await task.value } is CancellationError)
    }
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await world.cache.values(for: ["a", "b"])
    }
    for result in await task.value.values { #expect(throws: CancellationError.self) { try result.get() } }
    try await world.settle()
    #expect(world.source.callCount == 0)
    #expect(world.cache.statistics.fetches == 0)
  }

  /// A source that does not hear that it is cancelled, and ends when it is told.
  private func deaf() async throws -> (source: ScriptedSource<String, Int>, gate: ConcurrencyLimit) {
    let gate = ConcurrencyLimit(1)
    try await gate.acquire()
    let source = ScriptedSource<String, Int> { key, _ in
      await Task { try? await gate.acquire() }.value
      gate.release()
      return .value(key.count)
    }
    return (source, gate)
  }

  @Test func cancelledFetchesOfASourceThatDoesNotHearOfItAreFew() async throws {
    let (source, gate) = try await deaf()
    let clock = ManualClock()
    let cache = Cache(
      storage: try await LocalRepository(inMemory: .init()), freshness: CacheWorld.freshness, retry: .never, clock: clock, source: source)
    for number in 0..<500 {
      let task = Task { try await cache.value(for: "four").value }
      try await until { cache.flights.waiterCounts.contains { $0 > 0 } }
      if number < 2 { await source.waitForCalls(number + 1) }
      task.cancel()
      #expect(await failure { try await task.value } is CancellationError)
    }
    #expect(source.callCount == 2)
    // Who waits for the end of one gets what it brings, stored.
    let last = Task { try await cache.value(for: "four").value }
    try await until { cache.flights.waiterCounts.contains { $0 > 0 } }
    gate.release()
    #expect(try await last.value == 4)
    #expect(source.callCount == 2)
    #expect(try await cache.storage.find(by: "four")?.value == 4)
    try await until { cache.flights.isEmpty }
  }

  @Test func aFetchThatNeverEndsDoesNotShutItsKeyForEver() async throws {
    let (source, gate) = try await deaf()
    let clock = ManualClock()
    let cache = Cache(
      storage: try await LocalRepository(inMemory: .init()), freshness: CacheWorld.freshness, retry: .never, clock: clock, source: source)
    for number in 0..<3 {
      let task = Task { try await cache.value(for: "four").value }
      try await until { cache.flights.waiterCounts.contains { $0 > 0 } }
      if number < 2 { await source.waitForCalls(number + 1) }
      task.cancel()
      _ = await failure { try await task.value }
    }
    #expect(source.callCount == 2)
    clock.advance(by: .seconds(60))
    source.answer("four", .success(.value(7)))
    #expect(try await cache.value(for: "four").value == 7)
    gate.release()
    try await until { cache.flights.isEmpty }
    #expect(try await cache.value(for: "four", policy: .cacheOnly).value == 7)
  }

  @Test func whatWasInvalidatedIsNotBroughtByACancelledFetch() async throws {
    let (source, gate) = try await deaf()
    let cache = Cache(
      storage: try await LocalRepository(inMemory: .init()), freshness: CacheWorld.freshness, retry: .never, clock: ManualClock(),
      source: source)
    for number in 0..<2 {
      let task = Task { try await cache.value(for: "four").value }
      await source.waitForCalls(number + 1)
      task.cancel()
      _ = await failure { try await task.value }
    }
    try await cache.invalidate("four")
    let last = Task { try await cache.value(for: "four").value }
    try await until { cache.flights.waiterCounts.contains { $0 > 0 } }
    gate.release()
    #expect(try await last.value == 4)
    #expect(source.callCount == 3)
  }

  @Test func aCancelledFetchThatIsWantedAgainAndFailsIsNoted() async throws {
    let gate = ConcurrencyLimit(1)
    try await gate.acquire()
    let source = ScriptedSource<String, Int> { _, _ in
      await Task { try? await gate.acquire() }.value
      gate.release()
      throw Trouble()
    }
    let cache = Cache(
      storage: try await LocalRepository(inMemory: .init()), freshness: CacheWorld.freshness, retry: .never, clock: ManualClock(),
      source: source)
    for number in 0..<2 {
      let task = Task { try await cache.value(for: "four").value }
      await source.waitForCalls(number + 1)
      task.cancel()
      _ = await failure { try await task.value }
    }
    cache.refresh("four", cache.lookup("four"))
    gate.release()
    try await until { cache.flights.isEmpty }
    #expect(source.callCount == 2 && cache.statistics.fetchErrors == 1)
    #expect(!cache.flights.mayRefresh("four"))
  }

  @Test func aCancelledFetchThatIsWantedInTheBackgroundIsKept() async throws {
    let (source, gate) = try await deaf()
    let cache = Cache(
      storage: try await LocalRepository(inMemory: .init()), freshness: CacheWorld.freshness, retry: .never, clock: ManualClock(),
      source: source)
    for number in 0..<2 {
      let task = Task { try await cache.value(for: "four").value }
      await source.waitForCalls(number + 1)
      task.cancel()
      _ = await failure { try await task.value }
    }
    // Joins the newer one, and does not wait for it.
    cache.refresh("four", cache.lookup("four"))
    #expect(cache.flights.keptCount == 1)
    gate.release()
    try await until { cache.flights.isEmpty }
    #expect(source.callCount == 2)
    #expect(try await cache.storage.find(by: "four")?.value == 4)
  }
}
