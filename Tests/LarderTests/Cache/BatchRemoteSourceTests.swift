import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct BatchRemoteSourceTests {
  private static let freshness = FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48), jitter: 0)

  private func cache(
    _ source: some RemoteSource<String, Int>, retry: RetryPolicy = .never, clock: any WallClock = ManualClock(),
    random: @escaping @Sendable () -> Double = { 0.5 }
  ) async throws -> Cache {
    Cache(
      storage: try await LocalRepository(inMemory: .init()), freshness: Self.freshness, eviction: .none, retry: retry, clock: clock,
      source: source, random: random)
  }

  private func keys(_ count: Int) -> [String] { (0..<count).map { String(repeating: "k", count: $0 + 1) } }

  private func values(_ results: [String: Result<Cached<Int>, any Error>]) throws -> [String: Int] {
    try results.mapValues { try $0.get().value }
  }

  // MARK: Gathering

  @Test func theValuesOfManyKeysAreFetchedInAsFewRequestsAsPossible() async throws {
    let server = BatchServer()
    let cache = try await cache(server)
    let keys = keys(250)
    let values = try values(await cache.values(for: keys))
    #expect(values == Dictionary(uniqueKeysWithValues: keys.map { ($0, $0.count) }))
    #expect(server.requests.map(\.count).sorted() == [50, 100, 100])
    #expect(Set(server.requests.joined()) == Set(keys))
    // All of it is stored, each key for itself.
    for key in keys { #expect(try await cache.value(for: key).origin == .memory) }
    #expect(server.requests.count == 3)
  }

  @Test func aRequestTakesNoKeyOfAGroupThatIsNotComplete() throws {
    var queue = GatheringQueue<String, Int>()
    let (whole, part) = (FetchGroupMembers(2), FetchGroupMembers(2))
    for (key, group) in [("a1", whole), ("b1", part), ("a2", whole), ("a2", part)] {
      _ = queue.add(FetchRequest(key: key, validator: nil), group: group, waiter: OneShot())
      if group === whole { group.remove(nil) }
    }
    let first = try #require(queue.takeBatch(upTo: 3) { _, _ in true })
    // The second group's key that the request has anyway goes with it; its other key waits.
    #expect(first.members.map(\.request.key) == ["a1", "a2", "a2"])
    let next = queue.takeBatch(upTo: 3) { _, _ in true }
    #expect(next == nil)
    part.finish()
    let last = try #require(queue.takeBatch(upTo: 3) { _, _ in true })
    #expect(last.members.map(\.request.key) == ["b1"])
  }

  @Test func theKeysOfOneCallWaitForEachOther() async throws {
    let server = BatchServer(shares: { $0.first == $1.first })
    let source = server.limited(by: HostLimits(concurrency: ConcurrencyLimit(1)))
    let gate = Switch()
    let cache = try await cache(GatedSource(source: source, lateKey: "k-late") { gate.isOn })
    let call = Task { await cache.values(for: keys(20) + ["k-late"]) }
    try await until { source.counts.waiting == 20 }
    // Others' keys do not wait for them; were the call's keys not held, they would have gone before.
    #expect(try await cache.value(for: "other").value == 5)
    #expect(server.requests == [["other"]])
    gate.turn(true)
    #expect(try values(await call.value).count == 21)
    #expect(server.requests.map(\.count) == [1, 21])
  }

  @Test func prefetchingFetchesWhatIsMissingInOneRequest() async throws {
    let server = BatchServer()
    let cache = try await cache(server)
    _ = try await cache.value(for: "k")
    await cache.prefetch(keys(40))
    #expect(server.requests.map(\.count) == [1, 39])
  }

  @Test func whatIsStaleIsRefreshedInOneRequestBehindTheAnswer() async throws {
    let server = BatchServer()
    let clock = ManualClock()
    let cache = try await cache(server, clock: clock)
    await cache.prefetch(keys(40))
    clock.advance(by: .hours(2))
    let results = await cache.values(for: keys(40), policy: .staleWhileRevalidate)
    #expect(try results.values.allSatisfy { try $0.get().state == .stale })
    try await until { server.requests.count == 2 && cache.flights.isEmpty }
    #expect(server.requests.map(\.count) == [40, 40])
    #expect(try await cache.value(for: "k").state == .fresh)
  }

  @Test func singleCallsThatWaitForTheirTurnAreFetchedTogether() async throws {
    let server = BatchServer()
    let source = server.limited(by: HostLimits(concurrency: ConcurrencyLimit(1)))
    let cache = try await cache(source)
    server.hold()
    let keys = keys(30)
    let first = Task { try await cache.value(for: "first").value }
    try await until { server.heldCount == 1 }
    let others = keys.map { key in Task { try await cache.value(for: key).value } }
    try await until { source.counts.waiting == 30 }
    #expect(server.requests == [["first"]])
    server.release()
    #expect(try await first.value == 5)
    for (key, task) in zip(keys, others) { #expect(try await task.value == key.count) }
    #expect(server.requests.map(\.count) == [1, 30])
  }

  @Test func keysThatMayNotShareARequestAreFetchedApart() async throws {
    let server = BatchServer(shares: { $0.first == $1.first })
    let cache = try await cache(server)
    _ = try values(await cache.values(for: ["a1", "b1", "a2", "b2", "a3"]))
    #expect(Set(server.requests) == [["a1", "a2", "a3"], ["b1", "b2"]])
  }

  @Test func callersOfOneKeyShareItsPlaceInARequest() async throws {
    let server = BatchServer()
    let cache = try await cache(server)
    server.hold()
    let calls = (0..<10).map { _ in Task { await cache.values(for: ["a", "b", "c"]) } }
    try await until { cache.flights.waiterCounts.sorted() == [10, 10, 10] }
    server.release()
    for call in calls { #expect(try values(await call.value) == ["a": 1, "b": 1, "c": 1]) }
    #expect(server.requests.joined().sorted() == ["a", "b", "c"])
  }

  // MARK: Failing

  @Test func aBadKeyFailsAlone() async throws {
    let server = BatchServer { _, _ in ["bad": .failure(Trouble(isTransient: false))] }
    let cache = try await cache(server, retry: RetryPolicy(attempts: 3))
    let results = await cache.values(for: ["good", "bad", "better"])
    #expect(try results["good"]?.get().value == 4)
    #expect(try results["better"]?.get().value == 6)
    #expect(throws: Trouble(isTransient: false)) { try results["bad"]?.get() }
    #expect(server.requests.count == 1)
    #expect(cache.statistics.fetchErrors == 1)
  }

  @Test func aKeyWithoutAResultIsUnanswered() async throws {
    struct Forgetful: BatchRemoteSource {
      func fetch(_ requests: [FetchRequest<String>]) async throws -> [String: Result<Fetched<Int>, any Error>] {
        ["a": .success(.value(1))]
      }
    }
    let cache = try await cache(Forgetful())
    let results = await cache.values(for: ["a", "b"])
    #expect(try results["a"]?.get().value == 1)
    #expect(throws: CacheError.unanswered) { try results["b"]?.get() }
    await #expect(throws: CacheError.unanswered) { try await Forgetful().fetch("b", validator: nil) }
  }

  @Test func whatHasFailedInOneRequestIsTriedAgainInOne() async throws {
    let server = BatchServer { _, request in
      if request == 1 { throw Trouble() }
      return [:]
    }
    let clock = ManualClock()
    // At random for each key, the second attempts would come one after the other: after 5 seconds, 6.7, 7.5, ….
    let numbers = Notes()
    let cache = try await cache(server, retry: RetryPolicy(attempts: 2, base: .seconds(10)), clock: clock) {
      numbers.add(1)
      let count = Double(numbers.numbers.count)
      return count / (count + 1)
    }
    let call = Task { await cache.values(for: keys(50)) }
    await clock.waitForSleepers(50)
    clock.advance(by: .seconds(5))
    try await until { server.requests.count == 2 }
    clock.advance(by: .seconds(5))
    #expect(try values(await call.value).count == 50)
    #expect(server.requests.map(\.count) == [50, 50])
    #expect(cache.statistics.fetches == 100)
  }

  @Test func keysThatAreTriedAgainTogetherWaitForEachOther() async throws {
    let server = BatchServer { keys, request in
      if request == 1 { throw Trouble() }
      return [:]
    } shares: {
      $0.first == $1.first
    }
    let clock = ManualClock()
    let source = server.limited(by: HostLimits(concurrency: ConcurrencyLimit(1)))
    let gate = Switch(true)
    let cache = try await cache(
      GatedSource(source: source, lateKey: "k-late") { gate.isOn }, retry: RetryPolicy(attempts: 2, base: .seconds(10)), clock: clock)
    let call = Task { await cache.values(for: keys(20) + ["k-late"]) }
    await clock.waitForSleepers(21)
    gate.turn(false)
    clock.advance(by: .seconds(10))
    try await until { source.counts.waiting == 20 }
    #expect(try await cache.value(for: "other").value == 5)
    gate.turn(true)
    #expect(try values(await call.value).count == 21)
    #expect(server.requests.map(\.count) == [21, 1, 21])
  }

  @Test func theRetryAfterOfAKeyIsItsOwn() async throws {
    let server = BatchServer { _, request in
      request == 1 ? ["late": .failure(Trouble(retryAfter: .seconds(20))), "later": .failure(Trouble(retryAfter: .seconds(60)))] : [:]
    }
    let clock = ManualClock()
    let cache = try await cache(server, retry: RetryPolicy(attempts: 2, cap: .seconds(30)), clock: clock)
    let call = Task { await cache.values(for: ["now", "late", "later"]) }
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(20))
    let results = await call.value
    #expect(try results["now"]?.get().value == 3)
    #expect(try results["late"]?.get().value == 4)
    #expect(throws: Trouble.self) { try results["later"]?.get() }  // longer than the cap: not tried again
    #expect(server.requests == [["late", "later", "now"], ["late"]])
    // And not asked again until then.
    await #expect(throws: Trouble.self) { try await cache.value(for: "later") }
    #expect(server.requests.count == 2)
  }

  @Test func theKeyAtFaultIsFoundByHalves() async throws {
    struct Unparsable: RemoteSourceError {
      var isTransient: Bool { false }
      var mayConcernOneKey: Bool { true }
    }
    let server = BatchServer { keys, _ in
      if keys.contains("bad") { throw Unparsable() }
      return [:]
    }
    let cache = try await cache(server)
    let results = await cache.values(for: keys(15) + ["bad"])
    for key in keys(15) { #expect(try results[key]?.get().value == key.count) }
    #expect(throws: Unparsable.self) { try results["bad"]?.get() }
    #expect(server.requests.count == 9)  // 16, 2 × 8, 2 × 4, 2 × 2, 2 × 1
  }

  /// The bad key is the first of all, so that what fails is asked for before what does not.
  @Test func aKeyAtFaultDoesNotLookLikeAHostThatIsDown() async throws {
    struct Garbled: RemoteSourceError {
      var isTransient: Bool { true }
      var mayConcernOneKey: Bool { true }
    }
    let server = BatchServer { keys, _ in
      if keys.contains("bad") { throw Garbled() }
      return [:]
    }
    let clock = ManualClock()
    let limits = HostLimits(concurrency: ConcurrencyLimit(1), breaker: CircuitBreaker(clock: clock))
    let cache = try await cache(server.limited(by: limits), clock: clock)
    let results = await cache.values(for: ["bad"] + keys(15))
    for key in keys(15) { #expect(try results[key]?.get().value == key.count) }
    #expect(throws: Garbled.self) { try results["bad"]?.get() }
  }

  @Test func aHostThatIsDownIsNotAskedForEachHalf() async throws {
    struct Down: RemoteSourceError {
      var isTransient: Bool { true }
      var mayConcernOneKey: Bool { true }
    }
    let server = BatchServer { _, _ in throw Down() }
    let clock = ManualClock()
    let limits = HostLimits(concurrency: ConcurrencyLimit(1), breaker: CircuitBreaker(clock: clock))
    let cache = try await cache(server.limited(by: limits), clock: clock)
    let results = await cache.values(for: keys(16))
    #expect(server.requests.count == 5)
    // Each key fails with what the host did, and not with the breaker that it opened.
    for key in keys(16) { #expect(throws: Down.self) { try results[key]?.get() } }
  }

  // MARK: Limits

  @Test func aRequestCountsOnceAgainstTheLimitsOfItsHost() async throws {
    let clock = ManualClock()
    let quota = TokenBucket(10, per: .seconds(60), clock: clock)
    let server = BatchServer()
    let cache = try await cache(server.limited(by: HostLimits(quotas: [quota])))
    await cache.prefetch(keys(90))
    #expect(quota.available == 9)
    let weighed = try await self.cache(server.limited(by: HostLimits(quotas: [quota])) { _ in 1.5 })
    await weighed.prefetch(["a", "b"])
    #expect(quota.available == 6)
  }

  @Test func aSpentQuotaFailsTheKeysOfTheRequest() async throws {
    let quota = TokenBucket(1, per: .seconds(60), clock: ManualClock())
    let server = BatchServer(maxKeysPerRequest: 2)
    let cache = try await cache(server.limited(by: HostLimits(concurrency: ConcurrencyLimit(1), quotas: [quota])))
    let results = await cache.values(for: ["a", "b", "c", "d"])
    #expect(results.values.filter { if case .success = $0 { true } else { false } }.count == 2)
    #expect(results.values.filter { if case .failure(CacheError.quotaExceeded) = $0 { true } else { false } }.count == 2)
    #expect(server.requests.count == 1)
  }

  @Test func aRequestOfWhichNothingComesCountsAgainstTheBreaker() async throws {
    let breaker = CircuitBreaker(failureLimit: 1, clock: ManualClock())
    let server = BatchServer { keys, _ in Dictionary(uniqueKeysWithValues: keys.map { ($0, .failure(Trouble(name: $0))) }) }
    let cache = try await cache(server.limited(by: HostLimits(breaker: breaker)))
    let results = await cache.values(for: ["a", "b"])
    #expect(throws: Trouble(name: "a")) { try results["a"]?.get() }
    #expect(throws: Trouble(name: "b")) { try results["b"]?.get() }
    guard case .open = breaker.phase else {
      Issue.record("the breaker did not learn")
      return
    }
  }

  @Test func aLimitBetweenACacheAndItsGathererHoldsUpNobody() async throws {
    let server = BatchServer()
    let cache = try await cache(
      server.limited(by: HostLimits()).mapped(key: { $0 }, value: { $0 }).limited(by: HostLimits(concurrency: ConcurrencyLimit(1))))
    let group = FetchGroup(3)
    let calls = keys(3).map { key in Task { try await group.run { try await cache.value(for: key).value } } }
    for (key, call) in zip(keys(3), calls) { #expect(try await call.value == key.count) }
  }

  // MARK: Leaving

  @Test func aCancelledCallerLeavesAndTheRequestGoesOn() async throws {
    let server = BatchServer()
    let cache = try await cache(server)
    server.hold()
    let group = FetchGroup(2)
    let one = Task { try await group.run { try await cache.value(for: "one").value } }
    let other = Task { try await group.run { try await cache.value(for: "other").value } }
    try await until { server.heldCount == 1 }
    #expect(server.requests == [["one", "other"]])
    one.cancel()
    #expect(await failure { try await one.value } is CancellationError)
    #expect(server.cancelledCount == 0)
    server.release()
    #expect(try await other.value == 5)
  }

  @Test func theLastCallerToLeaveCancelsTheRequest() async throws {
    let server = BatchServer()
    let source = server.limited(by: HostLimits(concurrency: ConcurrencyLimit(1)))
    let cache = try await cache(source)
    server.hold()
    let call = Task { await cache.values(for: ["a", "b"]) }
    try await until { server.heldCount == 1 }
    let waiting = Task { try await cache.value(for: "c") }
    try await until { source.counts.waiting == 1 }
    waiting.cancel()
    #expect(await failure { try await waiting.value } is CancellationError)
    try await until { source.counts.waiting == 0 }
    call.cancel()
    for result in await call.value.values { #expect(throws: CancellationError.self) { try result.get() } }
    try await until { server.cancelledCount == 1 }
    // Its turn was given back.
    server.release()
    #expect(try await cache.value(for: "d").value == 1)
    #expect(server.requests == [["a", "b"], ["d"]])
  }
}
