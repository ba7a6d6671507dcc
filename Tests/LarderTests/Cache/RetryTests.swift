import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct RetryTests {
  @Test func aTransientErrorIsTriedAgainAfterAFullJitterDelay() async throws {
    let world = try await CacheWorld(retry: RetryPolicy(attempts: 3, base: .seconds(1), cap: .seconds(30)), random: { 0.5 })
    world.source.answer("four", .failure(Trouble()), .failure(Trouble()))
    let task = Task { try await world.cache.value(for: "four").value }
    await world.clock.waitForSleepers()
    #expect(world.source.callCount == 1)
    world.clock.advance(by: .milliseconds(499))
    #expect(world.clock.sleeperCount == 1)
    world.clock.advance(by: .milliseconds(1))  // half of the base
    await world.source.waitForCalls(2)
    await world.clock.waitForSleepers()
    world.clock.advance(by: .milliseconds(999))
    #expect(world.clock.sleeperCount == 1)
    world.clock.advance(by: .milliseconds(1))  // half of twice the base
    #expect(try await task.value == 4)
    #expect(world.cache.statistics.fetches == 3)
    #expect(world.cache.statistics.fetchErrors == 2)
  }

  @Test func theNumberOfAttemptsIsBounded() async throws {
    let world = try await CacheWorld(retry: RetryPolicy(attempts: 3), source: ScriptedSource { _, _ in throw Trouble() })
    // With a delay of zero nothing sleeps.
    #expect(await failure { try await world.cache.value(for: "a") } is Trouble)
    #expect(world.source.callCount == 3)
  }

  @Test func whatTheSourceSaidIsToldAndNotThatALimitKeptItFromBeingAskedAgain() async throws {
    let clock = ManualClock()
    let limits = HostLimits(breaker: CircuitBreaker(failureLimit: 2, clock: clock))
    let source = ScriptedSource<String, Int> { _, _ in throw Trouble(name: "answer") }
    let cache = Cache(
      storage: try await LocalRepository(inMemory: .init()), freshness: CacheWorld.freshness, eviction: .none,
      retry: RetryPolicy(attempts: 3),
      clock: clock, source: source.limited(by: limits), random: { 0 })
    #expect(await failure { try await cache.value(for: "a") } as? Trouble == Trouble(name: "answer"))
    #expect(source.callCount == 2)
    // Who comes now has heard nothing else.
    #expect(await failure { try await cache.value(for: "b") } as? CacheError == .circuitOpen(until: clock.now + 30))
  }

  @Test func aPermanentErrorIsNotTriedAgain() async throws {
    let world = try await CacheWorld(
      retry: .default, source: ScriptedSource { _, _ in throw Trouble(isTransient: false) })
    #expect(await failure { try await world.cache.value(for: "a") } is Trouble)
    #expect(world.source.callCount == 1)
  }

  @Test func retryAfterIsWaitedForInFull() async throws {
    let world = try await CacheWorld(retry: .default)
    world.source.answer("four", .failure(Trouble(retryAfter: .seconds(20))))
    let task = Task { try await world.cache.value(for: "four").value }
    await world.clock.waitForSleepers()
    world.clock.advance(by: .seconds(19))
    #expect(world.clock.sleeperCount == 1)
    world.clock.advance(by: .seconds(1))
    #expect(try await task.value == 4)
  }

  @Test func aProviderWhoAsksForALongTimeIsNotAskedBeforeThat() async throws {
    let world = try await CacheWorld(retry: .default)
    let busy = Trouble(retryAfter: .hours(1))
    _ = try await world.cache.value(for: "four")
    world.clock.advance(by: .hours(2))
    world.source.answer("four", .failure(busy))
    #expect(try await world.cache.value(for: "four").refreshError as? Trouble == busy)
    for policy in [FetchPolicy.cacheFirst, .staleWhileRevalidate] {
      world.clock.advance(by: .seconds(1000))
      #expect(try await world.cache.value(for: "four", policy: policy).state == .stale)
    }
    try await world.settle()
    #expect(world.source.callCount == 2)
    world.clock.advance(by: .seconds(1600))
    #expect(try await world.cache.value(for: "four").state == .fresh)
  }

  @Test func anExplicitRefreshAsksBeforeThat() async throws {
    let world = try await CacheWorld()
    world.source.answer("four", .failure(Trouble(retryAfter: .hours(1))))
    _ = await failure { try await world.cache.value(for: "four") }
    #expect(await failure { try await world.cache.value(for: "four") } is Trouble)
    #expect(world.source.callCount == 1)
    #expect(try await world.cache.value(for: "four", policy: .networkOnly).value == 4)
    #expect(try await world.cache.value(for: "four").value == 4)
  }

  @Test func aRetryThatNobodyWaitsForIsCancelled() async throws {
    let world = try await CacheWorld(retry: RetryPolicy(base: .seconds(1)), random: { 0.5 })
    world.source.answer("four", .failure(Trouble()))
    let task = Task { try await world.cache.value(for: "four").value }
    await world.clock.waitForSleepers()
    task.cancel()
    #expect(await failure { try await task.value } is CancellationError)
    try await until { world.clock.sleeperCount == 0 }
    #expect(world.source.callCount == 1)
  }

  @Test func delaysStayBelowTheirCeilings() throws {
    let policy = RetryPolicy(attempts: 100, base: .milliseconds(500), cap: .seconds(30))
    let error = ErrorTraits(Trouble())
    var generator = SeededGenerator(try #require(Seeds.list(1, for: #function).first))
    for attempt in 1..<100 {
      let delay = try #require(policy.delay(after: attempt, error, random: Double.random(in: 0..<1, using: &generator)))
      #expect(delay >= .zero && delay <= .seconds(30))
      #expect(delay <= .milliseconds(500) * (1 << min(attempt - 1, 20)))
    }
    #expect(policy.delay(after: 100, error, random: 0) == nil)
    #expect(policy.delay(after: 1, ErrorTraits(Trouble(retryAfter: .seconds(31))), random: 0) == nil)
    #expect(policy.delay(after: 1, ErrorTraits(Trouble(retryAfter: .seconds(30))), random: 0) == .seconds(30))
    #expect(RetryPolicy.never.delay(after: 1, error, random: 0) == nil)
  }

  @Test func errorsThatSayNothingAreJudgedByTheirKind() {
    struct Unknown: Error {}
    #expect(ErrorTraits(Unknown()).isTransient)
    #expect(ErrorTraits(Unknown()).countsAgainstBreaker)
    for error in [CancellationError(), CacheError.notCached, RepositoryError(.full)] as [any Error] {
      #expect(!ErrorTraits(error).isTransient)
      #expect(!ErrorTraits(error).countsAgainstBreaker)
    }
    #expect(!ErrorTraits(Trouble(isTransient: false)).countsAgainstBreaker)
  }
}
