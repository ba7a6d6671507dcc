import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct HostLimitTests {
  // MARK: Concurrency

  @Test func permitsAreGivenInTheOrderOfAsking() async throws {
    let limit = ConcurrencyLimit(1)
    let order = Notes()
    try await limit.acquire()
    var tasks: [Task<Void, any Error>] = []
    for number in 0..<20 {
      tasks.append(Task { try await limit.withPermit { order.add(number) } })
      try await until { limit.waitingCount == number + 1 }
    }
    limit.release()
    for task in tasks { try await task.value }
    #expect(order.numbers == Array(0..<20))
  }

  @Test func whoIsCancelledLeavesTheQueueAndItsPermitIsNotLost() async throws {
    let limit = ConcurrencyLimit(1)
    try await limit.acquire()
    let first = Task { try await limit.withPermit {} }
    try await until { limit.waitingCount == 1 }
    let second = Task { try await limit.withPermit { true } }
    try await until { limit.waitingCount == 2 }
    first.cancel()
    #expect(await failure { try await first.value } is CancellationError)
    #expect(limit.waitingCount == 1)
    limit.release()
    #expect(try await second.value)
    #expect(try await limit.withPermit { true })
  }

  @Test func thoseWhoHaveLeftAreNotRememberedForEver() async throws {
    let limit = ConcurrencyLimit(1)
    try await limit.acquire()
    let patient = Task { try await limit.withPermit { true } }
    try await until { limit.waitingCount == 1 }
    for _ in 0..<200 {
      let task = Task { try await limit.withPermit {} }
      try await until { limit.waitingCount == 2 }
      task.cancel()
      _ = await failure { try await task.value }
    }
    #expect(limit.semaphore.queueLength < 30)
    limit.release()
    #expect(try await patient.value)
  }

  @Test func anOperationThatFailsGivesItsPermitBack() async throws {
    let limit = ConcurrencyLimit(1)
    #expect(await failure { try await limit.withPermit { throw Trouble() } } is Trouble)
    #expect(try await limit.withPermit { true })
  }

  @Test func severalCachesOfOneHostShareItsLimit() async throws {
    let limits = HostLimits(concurrency: ConcurrencyLimit(4))
    let source = ScriptedSource<String, Int> { key, _ in .value(key.count) }
    source.hold()
    var caches: [Cache] = []
    for _ in 0..<3 {
      caches.append(
        Cache(
          storage: try await LocalRepository(inMemory: .init()), freshness: CacheWorld.freshness, source: source.limited(by: limits)))
    }
    await withTaskGroup(of: Void.self) { group in
      for (number, cache) in caches.enumerated() {
        group.addTask { await cache.prefetch((0..<20).map { "cache \(number) key \($0)" }) }
      }
      await source.waitForHeld(4)
      try? await until { (limits.concurrency?.waitingCount ?? 0) >= 14 }  // six at a time of each cache, four of them running
      #expect(source.callCount == 4)
      source.release()
    }
    #expect(source.callCount == 60)
    #expect(source.mostAtOnce <= 4)
  }

  @Test func aFetchThatNobodyWaitsForLeavesTheQueueOfItsHost() async throws {
    let limit = ConcurrencyLimit(1)
    try await limit.acquire()
    let source = ScriptedSource<String, Int> { key, _ in .value(key.count) }
    let cache = Cache(
      storage: try await LocalRepository(inMemory: .init()), freshness: CacheWorld.freshness, retry: .never,
      source: source.limited(by: HostLimits(concurrency: limit)))
    let task = Task { try await cache.value(for: "a") }
    try await until { limit.waitingCount == 1 }
    task.cancel()
    #expect(await failure { try await task.value } is CancellationError)
    try await until { limit.waitingCount == 0 }
    #expect(source.callCount == 0)
  }

  @Test func tenThousandRequestsForFiftyKeysAreFiftyFetchesFourAtATime() async throws {
    let source = ScriptedSource<String, Int> { key, _ in .value(key.count) }
    let cache = Cache(
      storage: try await LocalRepository(inMemory: .init()), freshness: CacheWorld.freshness,
      source: source.limited(by: HostLimits(concurrency: ConcurrencyLimit(4))))
    source.hold()
    try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<10_000 { group.addTask { try await cache.value(for: "spot \(number % 50)").value } }
      await source.waitForHeld(4)
      #expect(source.callCount == 4)
      source.release()
      for try await value in group { #expect(value == 6 || value == 7) }
    }
    #expect(source.callCount == 50)
    #expect(source.mostAtOnce <= 4)
  }

  // MARK: Quota

  @Test func aBucketGivesItsCapacityAndFillsUpEvenly() async throws {
    let clock = ManualClock()
    let bucket = TokenBucket(60, per: .seconds(60), clock: clock)
    try await bucket.take(60)
    let error = await failure { try await bucket.take() }
    #expect(error as? CacheError == .quotaExceeded(until: clock.now + 1))
    clock.advance(by: .seconds(10))
    #expect(bucket.available == 10)
    try await bucket.take(10)
    #expect(await failure { try await bucket.take(0.5) } is CacheError)
    clock.advance(by: .hours(1))
    #expect(bucket.available == 60)
  }

  @Test func aBucketThatMayWaitLetsThemThroughInTurn() async throws {
    let clock = ManualClock()
    let bucket = TokenBucket(1, per: .seconds(1), maximumWait: .seconds(2), clock: clock)
    try await bucket.take()
    let first = Task { try await bucket.take() }
    await clock.waitForSleepers(1)
    let second = Task { try await bucket.take() }
    await clock.waitForSleepers(2)
    #expect(await failure { try await bucket.take() } as? CacheError == .quotaExceeded(until: clock.now + 3))
    clock.advance(by: .seconds(1))
    try await first.value
    #expect(clock.sleeperCount == 1)
    clock.advance(by: .seconds(1))
    try await second.value
  }

  @Test func aCancelledWaitGivesItsTokensBack() async throws {
    let clock = ManualClock()
    let bucket = TokenBucket(10, per: .seconds(10), maximumWait: .seconds(60), clock: clock)
    try await bucket.take(10)
    let task = Task { try await bucket.take(10) }
    await clock.waitForSleepers()
    task.cancel()
    #expect(await failure { try await task.value } is CancellationError)
    clock.advance(by: .seconds(10))
    #expect(bucket.available == 10)
  }

  @Test func aWeightAboveTheCapacityIsPaidOff() async throws {
    let clock = ManualClock()
    let bucket = TokenBucket(10, per: .seconds(10), clock: clock)
    try await bucket.take(25)
    clock.advance(by: .seconds(15))
    #expect(bucket.available == 0)
    clock.advance(by: .seconds(10))
    #expect(bucket.available == 10)
  }

  @Test func whatIsNotSentDoesNotCount() async throws {
    let clock = ManualClock()
    let (minute, day) = (TokenBucket(100, per: .seconds(60), clock: clock), TokenBucket(10, per: .hours(24), clock: clock))
    let limits = HostLimits(quotas: [minute, day])
    try await limits.run(weight: 10) {}
    #expect(minute.available == 90)
    // The second quota refuses: the first gets its part back.
    #expect(await failure { try await limits.run(weight: 5) {} } is CacheError)
    #expect(minute.available == 90)
    // The breaker refuses: all get it back.
    let breaker = CircuitBreaker(failureLimit: 1, clock: clock)
    let guarded = HostLimits(quotas: [minute], breaker: breaker)
    #expect(await failure { try await guarded.run { throw Trouble() } } is Trouble)
    #expect(minute.available == 89)
    #expect(await failure { try await guarded.run(weight: 5) {} } as? CacheError == .circuitOpen(until: clock.now + 30))
    #expect(minute.available == 89)
  }

  @Test func aFetchCountsItsWeight() async throws {
    let clock = ManualClock()
    let bucket = TokenBucket(10, per: .hours(1), clock: clock)
    let source = ScriptedSource<String, Int> { key, _ in .value(key.count) }
    let cache = Cache(
      storage: try await LocalRepository(inMemory: .init()), freshness: CacheWorld.freshness, clock: clock,
      source: source.limited(by: HostLimits(quotas: [bucket])) { Double($0.count) })
    _ = try await cache.value(for: "seven 7")
    #expect(bucket.available == 3)
    // Refused without being asked, and not tried again.
    #expect(await failure { try await cache.value(for: "four") } is CacheError)
    #expect(source.callCount == 1)
  }

  // MARK: Breaker

  @Test func aBreakerOpensAfterFailuresInARowAndProbesOnce() async throws {
    let clock = ManualClock()
    let breaker = CircuitBreaker(clock: clock)
    for _ in 0..<4 { _ = await failure { try await breaker.run { throw Trouble() } } }
    try await breaker.run {}  // a success in between
    for _ in 0..<4 { _ = await failure { try await breaker.run { throw Trouble() } } }
    #expect(breaker.phase == .closed)
    _ = await failure { try await breaker.run { throw Trouble() } }
    #expect(breaker.phase == .open(until: clock.now + 30))
    #expect(await failure { try await breaker.run {} } as? CacheError == .circuitOpen(until: clock.now + 30))
    clock.advance(by: .seconds(30))
    #expect(breaker.phase == .halfOpen)
    // While the probe is under way nobody else goes through.
    let second = await failure { try await breaker.run { try await breaker.run {} } }
    #expect(second is CacheError)
  }

  @Test func aProbeThatFailsDoublesTheCoolDownUpToItsLimit() async throws {
    let clock = ManualClock()
    let breaker = CircuitBreaker(failureLimit: 1, clock: clock)
    var expected: [Double] = []
    _ = await failure { try await breaker.run { throw Trouble() } }
    for _ in 0..<7 {
      guard case .open(let until) = breaker.phase else { break }
      let wait = until.timeIntervalSince(clock.now).rounded()
      expected.append(wait)
      clock.advance(by: .seconds(wait))
      _ = await failure { try await breaker.run { throw Trouble() } }
    }
    #expect(expected == [30, 60, 120, 240, 480, 600, 600])
    clock.advance(by: .seconds(600))
    try await breaker.run {}
    #expect(breaker.phase == .closed)
    _ = await failure { try await breaker.run { throw Trouble() } }
    #expect(breaker.phase == .open(until: clock.now + 30))
  }

  @Test func whatIsWrongWithTheRequestDoesNotOpenTheBreaker() async throws {
    let breaker = CircuitBreaker(failureLimit: 2, clock: ManualClock())
    for _ in 0..<5 { _ = await failure { try await breaker.run { throw Trouble(isTransient: false) } } }
    for _ in 0..<5 { _ = await failure { try await breaker.run { throw CancellationError() } } }
    #expect(breaker.phase == .closed)
  }

  @Test func anErrorThatDoesNotCountTeachesNothing() async throws {
    let clock = ManualClock()
    let breaker = CircuitBreaker(failureLimit: 2, clock: clock)
    let refusal = Trouble(isTransient: false)
    // No success, so the failures around it are in a row.
    _ = await failure { try await breaker.run { throw Trouble() } }
    _ = await failure { try await breaker.run { throw refusal } }
    _ = await failure { try await breaker.run { throw Trouble() } }
    #expect(breaker.phase == .open(until: clock.now + 30))
    clock.advance(by: .seconds(30))
    // No success and no failure of a probe either: each of these is the probe.
    for _ in 0..<3 {
      #expect(await failure { try await breaker.run { throw refusal } } as? Trouble == refusal)
      #expect(breaker.phase == .halfOpen)
    }
    _ = await failure { try await breaker.run { throw Trouble() } }
    #expect(breaker.phase == .open(until: clock.now + 60))
    clock.advance(by: .seconds(60))
    try await breaker.run {}
    #expect(breaker.phase == .closed)
  }

  @Test func aCancelledProbeLeavesTheNextOneToProbe() async throws {
    let clock = ManualClock()
    let breaker = CircuitBreaker(failureLimit: 1, clock: clock)
    _ = await failure { try await breaker.run { throw Trouble() } }
    clock.advance(by: .seconds(30))
    _ = await failure { try await breaker.run { throw CancellationError() } }
    #expect(breaker.phase == .halfOpen)
    try await breaker.run {}
    #expect(breaker.phase == .closed)
  }

  @Test func requestsFromBeforeTheOpeningDoNotCountAfterIt() async throws {
    let clock = ManualClock()
    let breaker = CircuitBreaker(failureLimit: 1, clock: clock)
    let (early, late) = (try breaker.admit(), try breaker.admit())
    breaker.note(early, Trouble())
    breaker.note(late, nil)  // an old success closes nothing
    #expect(breaker.phase == .open(until: clock.now + 30))
    clock.advance(by: .seconds(30))
    let probe = try breaker.admit()
    breaker.note(late, Trouble())
    breaker.note(probe, nil)
    #expect(breaker.phase == .closed)
  }

  @Test func aProviderWhoAsksForALongTimeOpensTheBreakerAtOnce() async throws {
    let clock = ManualClock()
    let breaker = CircuitBreaker(clock: clock)
    _ = await failure { try await breaker.run { throw Trouble(retryAfter: .hours(1)) } }
    #expect(breaker.phase == .open(until: clock.now + 3600))
  }

  @Test func aHostThatIsDownGetsFewRequestsAndStaleValuesAreServed() async throws {
    let clock = ManualClock()
    let breaker = CircuitBreaker(clock: clock)
    let source = ScriptedSource<String, Int> { key, _ in .value(key.count) }
    let cache = Cache(
      storage: try await LocalRepository(inMemory: .init()), freshness: CacheWorld.freshness, eviction: .none, retry: .default,
      clock: clock, source: source.limited(by: HostLimits(concurrency: ConcurrencyLimit(4), breaker: breaker)), random: { 0 })
    let keys = (0..<100).map { "key \($0)" }
    await cache.prefetch(keys)
    clock.advance(by: .hours(2))
    for key in keys { source.answer(key, .failure(Trouble()), .failure(Trouble()), .failure(Trouble())) }
    let before = source.callCount
    let results = await cache.values(for: keys)
    #expect(results.values.allSatisfy { (try? $0.get().state) == .stale })
    // Five failures open it; what was under way then may still fail.
    #expect(source.callCount - before <= 5 + 3)
    #expect(try results["key 99"]?.get().refreshError != nil)
  }

  // MARK: Numbers that a caller misstates

  @Test func noNumberOfACallerTrapsABucket() async throws {
    let clock = ManualClock()
    for capacity in [Double(0), -1, .nan, -.infinity, .leastNonzeroMagnitude] {
      let bucket = TokenBucket(capacity, per: .seconds(60), clock: clock)
      #expect(await failure { try await bucket.take() } is CacheError || bucket.capacity > 0)
      #expect(await failure { try await bucket.take() } is CacheError)
      if bucket.capacity == 0 { try await bucket.take(0) }
    }
    for period in [Duration.zero, .seconds(-1), .seconds(Int64.max)] {
      for capacity in [1, Double.infinity, .greatestFiniteMagnitude] {
        let bucket = TokenBucket(capacity, per: period, maximumWait: .seconds(Int64.max), clock: clock)
        try await bucket.take()
        #expect(bucket.available >= 0)
        clock.advance(by: .hours(1))
        #expect(bucket.available.isFinite)
      }
    }
    let bucket = TokenBucket(10, per: .seconds(10), clock: clock)
    for weight in [Double.infinity, .nan, .greatestFiniteMagnitude] {
      #expect(await failure { try await bucket.take(weight) } as? CacheError == .quotaExceeded(until: .distantFuture))
      #expect(await failure { try await HostLimits(quotas: [bucket]).run(weight: weight) {} } is CacheError)
    }
    try await bucket.take(-.infinity)
    try await bucket.take(-5)
    #expect(bucket.available == 10)
  }

  @Test func noTimeOfACallerOrAProviderTrapsABreaker() async throws {
    let (clock, huge) = (ManualClock(), Duration.seconds(Int64.max))
    let breaker = CircuitBreaker(failureLimit: .min, coolDown: huge, maximumCoolDown: huge, clock: clock)
    for _ in 0..<3 {
      _ = await failure { try await breaker.run { throw Trouble(retryAfter: huge) } }
      guard case .open = breaker.phase else { return #expect(Bool(false), "\(breaker.phase)") }
      clock.advance(by: .longest)
    }
  }

  // MARK: Who asks

  @Test func aCallerWhoIsCancelledMakesNoRequest() async throws {
    let bucket = TokenBucket(10, per: .hours(1), clock: ManualClock())
    let limits = HostLimits(quotas: [bucket])
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await limits.run { _ = Issue.record("a request of a cancelled task") }
    }
    #expect(await failure { try await task.value } is CancellationError)
    #expect(bucket.available == 10)
  }

  @Test func aProbeThatDoesNotEndGivesWayToTheNext() async throws {
    let clock = ManualClock()
    let breaker = CircuitBreaker(failureLimit: 1, clock: clock)
    _ = await failure { try await breaker.run { throw Trouble() } }
    clock.advance(by: .seconds(30))
    let lost = try breaker.admit()
    clock.advance(by: .seconds(29))
    #expect(await failure { try await breaker.run {} } is CacheError)
    clock.advance(by: .seconds(1))
    let second = try breaker.admit()
    #expect(await failure { try await breaker.run {} } is CacheError)
    breaker.note(lost, Trouble())  // counts no more
    #expect(breaker.phase == .halfOpen)
    breaker.note(second, nil)
    #expect(breaker.phase == .closed)
  }
}
