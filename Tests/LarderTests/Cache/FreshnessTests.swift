import Foundation
import LarderTesting
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct FreshnessTests {
  private static let year: TimeInterval = 365 * 86_400

  @Test func aProvidersExpiryWinsOverOurs() async throws {
    let clock = ManualClock()
    let start = clock.now
    let world = try await CacheWorld(
      clock: clock, random: { 0.99 },
      source: ScriptedSource { key, _ in .value(1, freshUntil: start + (key == "short" ? 300 : 7200)) })
    await world.cache.prefetch(["short", "long"])
    world.clock.advance(by: .seconds(299))
    #expect(try await world.cache.value(for: "short", policy: .cacheOnly).state == .fresh)
    world.clock.advance(by: .seconds(1))
    #expect(try await world.cache.value(for: "short", policy: .cacheOnly).state == .stale)
    world.clock.advance(by: .seconds(6899))
    #expect(try await world.cache.value(for: "long", policy: .cacheOnly).state == .fresh)
    world.clock.advance(by: .seconds(1))
    #expect(try await world.cache.value(for: "long", policy: .cacheOnly).state == .stale)
  }

  @Test func aProvidersExpiryIsBoundedByTheUsableWindow() async throws {
    let world = try await CacheWorld(source: ScriptedSource { _, _ in .value(1, freshUntil: .distantFuture) })
    _ = try await world.cache.value(for: "a")
    world.clock.advance(by: .hours(48))
    #expect(await failure { try await world.cache.value(for: "a", policy: .cacheOnly) } as? CacheError == .notCached)
  }

  @Test func aProvidersExpiryInThePastMeansStaleAtOnce() async throws {
    let world = try await CacheWorld(source: ScriptedSource { _, _ in .value(1, freshUntil: .distantPast) })
    #expect(try await world.cache.value(for: "a").state == .stale)
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).age == .zero)
  }

  @Test func jitterShortensAndNeverLengthens() async throws {
    for random in [0, 0.5, 0.999_999] {
      let world = try await CacheWorld(
        freshness: FreshnessPolicy(fresh: .seconds(1000), usable: .hours(1), jitter: 0.2), random: { random })
      _ = try await world.cache.value(for: "a")
      let entry = try #require(try await world.storage.find(by: "a"))
      let lifetime = entry.freshUntil.timeIntervalSince(entry.fetchedAt)
      #expect(abs(lifetime - 1000 * (1 - 0.2 * random)) < 1e-3)
      #expect(lifetime <= 1000)
      #expect(abs(entry.usableUntil.timeIntervalSince(entry.fetchedAt) - 3600) < 1e-3)
    }
  }

  @Test func jitterIsDifferentForEachValue() async throws {
    let storage = try await LocalRepository<Entry>(inMemory: .init())
    let cache = Cache(
      storage: storage, freshness: FreshnessPolicy(fresh: .seconds(1000), usable: .hours(1)), clock: ManualClock(),
      source: ScriptedSource { _, _ in .value(1) })
    await cache.prefetch((0..<100).map { "key \($0)" })
    let lifetimes = try await storage.loadAll().map { $0.freshUntil.timeIntervalSince($0.fetchedAt) }
    #expect(lifetimes.allSatisfy { 900...1000 ~= $0 })
    #expect(Set(lifetimes).count > 50)
  }

  @Test func settingTheClockAYearAheadWipesNothing() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    world.clock.setWall(by: Self.year)
    let cached = try await world.cache.value(for: "a")
    #expect(cached.state == .fresh)
    #expect(cached.age == .zero)
    #expect(cached.origin == .memory)
  }

  @Test func settingTheClockAYearBackKeepsNothingFresh() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    world.clock.setWall(by: -Self.year)
    #expect(try await world.cache.value(for: "a").state == .fresh)
    world.clock.advance(by: .seconds(3600))
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).state == .stale)
    world.clock.advance(by: .hours(47))
    #expect(await failure { try await world.cache.value(for: "a", policy: .cacheOnly) } is CacheError)
  }

  @Test func settingTheClockAfterAStartDoesNotChangeTheAgeOfWhatAnEarlierRunHasLeft() async throws {
    for jump in [Self.year, -Self.year] {
      let world = try await CacheWorld()
      _ = try await world.cache.value(for: "a")
      world.clock.advance(by: .seconds(600))
      let clock = ManualClock(now: world.clock.now)
      let next = world.restarted(clock: clock)
      clock.setWall(by: jump)  // before anything was looked at
      clock.advance(by: .seconds(600))
      let cached = try await next.value(for: "a")
      #expect(cached.state == .fresh)
      #expect(cached.age == .seconds(1200))
    }
  }

  @Test func ageGoesOnAcrossARestart() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    world.clock.advance(by: .seconds(600))
    let next = world.restarted()
    let first = try await next.value(for: "a")
    #expect(first.age == .seconds(600))
    #expect(first.origin == .disk)
    #expect(first.fetchedAt == world.clock.now - 600)
    #expect(try await next.value(for: "a").origin == .memory)
  }

  @Test func anEntryFromTheFutureIsUsableAndStale() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    let clock = ManualClock(now: world.clock.now - Self.year)
    let next = world.restarted(clock: clock)
    #expect(try await next.value(for: "a", policy: .cacheOnly).state == .stale)
    // It ages from there on, and is gone when its usable window is.
    clock.advance(by: .hours(46))
    #expect(try await next.value(for: "a", policy: .cacheOnly).state == .stale)
    clock.advance(by: .hours(1))
    #expect(await failure { try await next.value(for: "a", policy: .cacheOnly) } is CacheError)
  }

  @Test func anEntryFromTheFutureDoesNotLiveOnByRestarts() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    let past = world.clock.now - Self.year
    #expect(try await world.restarted(clock: ManualClock(now: past)).value(for: "a", policy: .cacheOnly).state == .stale)
    while try await world.storage.find(by: "a")?.noticedInFutureAt == nil { await Task.yield() }
    let nextDay = world.restarted(clock: ManualClock(now: past + 86_400))
    #expect(try await nextDay.value(for: "a", policy: .cacheOnly).state == .stale)
    let thirdDay = world.restarted(clock: ManualClock(now: past + 3 * 86_400))
    #expect(await failure { try await thirdDay.value(for: "a", policy: .cacheOnly) } is CacheError)
    // When the clock is right again, the entry is as old as it is, and fresh no more.
    let corrected = world.restarted(clock: ManualClock(now: past + Self.year + 60))
    #expect(try await corrected.value(for: "a", policy: .cacheOnly).state == .stale)
    #expect(try await world.storage.count() == 1)
  }

  @Test func aClockThatWasAheadAtOneStartLosesNothing() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    let ahead = world.restarted(clock: ManualClock(now: world.clock.now + Self.year))
    #expect(await failure { try await ahead.value(for: "a", policy: .cacheOnly) } is CacheError)
    #expect(try await world.restarted().value(for: "a", policy: .cacheOnly).state == .fresh)
  }

  @Test func policiesAreMadeSensible() {
    let policy = FreshnessPolicy(fresh: .seconds(10), usable: .seconds(5), negative: .seconds(-1), jitter: 7)
    #expect(policy.usable == .seconds(10))
    #expect(policy.negative == .zero)
    #expect(policy.jitter == 1)
    #expect(FreshnessPolicy(fresh: .seconds(1), usable: .hours(48), jitter: .nan).jitter == 0)
    #expect(Duration.hours(48) == .seconds(172_800))
  }

  /// Between the staging of a refresh and its commit the old entry is what there is.
  @Test func settingTheClockWhileARefreshCommitsChangesNoAge() async throws {
    for jump in [Self.year, -Self.year, 7_200] {
      let world = try await CacheWorld()
      _ = try await world.cache.value(for: "a")
      world.clock.advance(by: .hours(2))
      world.disk.hold(.commit)
      let refresh = Task { try await world.cache.value(for: "a", policy: .networkOnly) }
      await world.disk.waitUntilHeld(.commit)
      world.clock.setWall(by: jump)
      let cached = try await world.cache.value(for: "a", policy: .cacheOnly)
      #expect(cached.age == .hours(2) && cached.state == .stale && cached.origin == .memory)
      world.disk.release(.commit)
      #expect(try await refresh.value.state == .fresh)
      #expect(try await world.cache.value(for: "a", policy: .cacheOnly).age == .zero)
    }
  }

  @Test func settingTheClockAfterADeletionThatFailedChangesNoAge() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    world.clock.advance(by: .seconds(60))
    world.clock.setWall(by: Self.year)
    world.disk.fail(.commit, with: RepositoryError(.full))
    #expect(await code { try await world.cache.invalidate("a") } == .full)
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).age == .seconds(60))
    world.disk.fail(.commit, with: RepositoryError(.full))
    #expect(await code { try await world.cache.removeAll() } == .full)
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).age == .seconds(60))
  }

  @Test(arguments: [31_536_000.0, -31_536_000])
  func whatAnotherCacheOfThisProcessStoresAgesByTheMonotonicClock(_ jump: TimeInterval) async throws {
    let world = try await CacheWorld()
    let other = world.restarted(clock: world.clock)
    _ = try await world.cache.value(for: "a")
    // As soon as its commit is told of, the other cache knows when it came.
    try await until { other.arrivals.heard == world.storage.snapshot.revision }
    world.clock.advance(by: .seconds(60))
    world.clock.setWall(by: jump)
    #expect(try await other.value(for: "a", policy: .cacheOnly).age == .seconds(60))
    // And what comes after the clock was set is as old as it says since.
    _ = try await world.cache.value(for: "b")
    try await until { other.arrivals.heard == world.storage.snapshot.revision }
    world.clock.advance(by: .seconds(30))
    world.clock.setWall(by: -jump)
    #expect(try await other.value(for: "b", policy: .cacheOnly).age == .seconds(30))
    #expect(try await other.value(for: "a", policy: .cacheOnly).age == .seconds(90))
  }

  @Test func anEntryThatIsWrittenAgainGoesOnAgingHere() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    world.clock.advance(by: .seconds(60))
    world.clock.setWall(by: Self.year)
    let entry = try #require(try await world.storage.find(by: "a"))
    try await world.storage.save(entry)  // as a migration or another process does
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).age == .seconds(60))
  }

  @Test func aHitIsOfTheRecordThatIsThereNow() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    for number in 5..<8 {
      for _ in 0..<2 { _ = try await world.cache.value(for: "a", policy: .cacheOnly) }
      let entry = try #require(try await world.storage.find(by: "a"))
      try await world.storage.save(
        Entry(
          key: "a", content: .value(number), fetchedAt: entry.fetchedAt, freshUntil: entry.freshUntil, usableUntil: entry.usableUntil))
      for _ in 0..<2 { #expect(try await world.cache.value(for: "a", policy: .cacheOnly).value == number) }
      _ = try await world.cache.value(for: "b", policy: .networkOnly)
      #expect(try await world.cache.value(for: "a", policy: .cacheOnly).value == number)
    }
    try await world.storage.delete("a")
    #expect(await failure { try await world.cache.value(for: "a", policy: .cacheOnly) } as? CacheError == .notCached)
  }

  // MARK: Numbers of others

  @Test(arguments: [1e21, -1e21, 1e300, .infinity, -.infinity, .nan])
  func noExpiryOfAProviderTraps(seconds: Double) async throws {
    let moment = Date(timeIntervalSinceReferenceDate: seconds)
    let world = try await CacheWorld(
      source: ScriptedSource { key, validator in
        validator == nil ? .value(1, validator: "v", freshUntil: moment) : .notModified(freshUntil: moment)
      })
    let expected = seconds.isNaN ? Duration.hours(1) : seconds > 0 ? .hours(48) : .zero
    for _ in 0..<2 {
      let cached = try await world.cache.value(for: "a", policy: .networkOnly)
      #expect(cached.state == (expected == .zero ? .stale : .fresh))
      let entry = try #require(try await world.storage.find(by: "a"))
      #expect(entry.freshLifetime == expected)
    }
    #expect(try await world.restarted().value(for: "a", policy: .cacheOnly).value == 1)
  }

  @Test func noTimeOfASourceOrACallerTraps() async throws {
    let huge = Duration.seconds(Int64.max)
    for policy in [
      FreshnessPolicy(fresh: huge, usable: huge, negative: huge), FreshnessPolicy(fresh: .zero - huge, usable: .zero - huge),
      FreshnessPolicy(fresh: .hours(Int.max), usable: .hours(Int.max)),
    ] {
      let world = try await CacheWorld(freshness: policy, retry: RetryPolicy(attempts: .max, base: huge, cap: huge))
      #expect(try await world.cache.value(for: "a").value == 1)
      world.clock.advance(by: .hours(1))
      let expected: Cached<Int>.State = policy.fresh == .zero ? .stale : .fresh
      #expect(try await world.cache.value(for: "a", policy: .networkFirst(timeout: huge)).value == 1)
      #expect(try await world.restarted(freshness: policy).value(for: "a", policy: .staleWhileRevalidate).value == 1)
      _ = expected
    }
    let world = try await CacheWorld()
    world.source.answer("none", .success(.absent(reason: "sea", lifetime: huge)))
    world.source.answer("busy", .failure(Trouble(retryAfter: huge)), .success(.value(1)))
    for key in ["none", "none", "busy", "busy"] { _ = await failure { try await world.cache.value(for: key) } }
    #expect(world.source.callCount == 2)
    #expect(Duration.hours(UInt64.max) > .hours(1_000_000) && Duration.hours(Int64.min) < .zero)
  }

  @Test func noStoredNumberTraps() async throws {
    let world = try await CacheWorld(eviction: EvictionPolicy(countLimit: 2, byteLimit: 100))
    for (number, moment) in [1e300, -1e300, 1e21].enumerated() {
      try await world.storage.save(
        Entry(
          key: "key \(number)", content: .value(1), fetchedAt: Date(timeIntervalSinceReferenceDate: moment),
          freshUntil: Date(timeIntervalSinceReferenceDate: -moment), usableUntil: Date(timeIntervalSinceReferenceDate: moment),
          validator: nil, byteCount: .max, noticedInFutureAt: nil))
    }
    let cache = world.restarted(eviction: EvictionPolicy(countLimit: 2, byteLimit: 100))
    for number in 0..<3 { _ = try await cache.value(for: "key \(number)") }
    #expect(try await cache.value(for: "new").value == 3)
    #expect(try await world.storage.count() <= 2)
  }
}
