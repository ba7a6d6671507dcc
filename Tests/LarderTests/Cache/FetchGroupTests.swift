import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct FetchGroupTests {
  private typealias TextCache = CachedRepository<Int, String>

  private let server = BatchServer()
  private let clock = ManualClock()
  private static let freshness = FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48), jitter: 0)

  private func caches() async throws -> (Cache, TextCache) {
    let source = server.limited(by: HostLimits())
    return (
      try await Cache.inMemory(freshness: Self.freshness, clock: clock, source: source),
      try await TextCache.inMemory(
        freshness: Self.freshness, clock: clock, source: source.mapped(key: { String(repeating: "n", count: $0) }, value: { "\($0)" }))
    )
  }

  @Test func callsOfSeveralCachesAreOneRequest() async throws {
    let (lengths, texts) = try await caches()
    let group = FetchGroup(3)
    async let first = group.run { try await lengths.value(for: "four").value }
    async let second = group.run { try await lengths.value(for: "three").value }
    async let third = group.run { try await texts.value(for: 2).value }
    let (four, five, two) = (try await first, try await second, try await third)
    #expect(four == 4 && five == 5 && two == "2")
    #expect(server.requests == [["four", "nn", "three"]])
  }

  @Test func aRequestIsHeldUntilTheWholeGroupIsThere() async throws {
    let server = BatchServer(shares: { $0.first == $1.first })
    let source = server.limited(by: HostLimits(concurrency: ConcurrencyLimit(1)))
    let cache = try await Cache.inMemory(freshness: Self.freshness, clock: clock, source: source)
    let group = FetchGroup(2)
    let early = Task { try await group.run { try await cache.value(for: "a").value } }
    try await until { source.counts.waiting == 1 }
    // Keys of others are not held up; this one cannot go with the group's.
    #expect(try await cache.value(for: "bbb").value == 3)
    let late = Task { try await group.run { try await cache.value(for: "aa").value } }
    #expect(try await early.value == 1)
    #expect(try await late.value == 2)
    #expect(server.requests == [["bbb"], ["a", "aa"]])
  }

  /// Keys that are tried again join their group one by one: it may be complete, open again, and complete once more.
  @Test func aGroupThatIsCompleteOnceMoreStartsItsRequestsOnceMore() {
    final class Gatherer: FetchGathering {
      let starts = Mutex(0)
      func startRequests() { starts.withLock { $0 += 1 } }
    }
    let gatherer = Gatherer()
    let members = FetchGroupMembers(1)
    members.remove(gatherer)
    #expect(gatherer.starts.withLock { $0 } == 1)
    members.add()
    #expect(!members.isComplete)
    // Its last caller was cancelled before it arrived.
    members.remove(nil)
    #expect(gatherer.starts.withLock { $0 } == 2)
  }

  @Test func aCallThatNeedsNoRequestHoldsUpNobody() async throws {
    let (lengths, texts) = try await caches()
    _ = try await lengths.value(for: "four")
    let group = FetchGroup(2)
    async let first = group.run { try await lengths.value(for: "four").origin }
    async let second = group.run { try await texts.value(for: 2).value }
    let (origin, text) = (try await first, try await second)
    #expect(origin == .memory && text == "2")
    #expect(server.requests == [["four"], ["nn"]])
  }

  @Test func aCallThatJoinsAFetchHoldsUpNobody() async throws {
    let (lengths, texts) = try await caches()
    server.hold()
    let early = Task { try await lengths.value(for: "four").value }
    try await until { server.heldCount == 1 }
    let group = FetchGroup(2)
    let joined = Task { try await group.run { try await lengths.value(for: "four").value } }
    let other = Task { try await group.run { try await texts.value(for: 2).value } }
    try await until { server.heldCount == 2 }
    #expect(server.requests == [["four"], ["nn"]])
    server.release()
    #expect(try await early.value == 4)
    #expect(try await joined.value == 4)
    #expect(try await other.value == "2")
  }

  @Test func aRefreshBehindTheAnswerStaysInTheGroup() async throws {
    let (lengths, texts) = try await caches()
    await lengths.prefetch(["four"])
    await texts.prefetch([2])
    clock.advance(by: .hours(2))
    let group = FetchGroup(2)
    async let first = group.run { try await lengths.value(for: "four", policy: .staleWhileRevalidate).state }
    async let second = group.run { try await texts.value(for: 2, policy: .staleWhileRevalidate).state }
    let (one, other) = (try await first, try await second)
    #expect(one == .stale && other == .stale)
    try await until { server.requests.count == 3 }
    #expect(server.requests.last == ["four", "nn"])
  }

  @Test func callsThatWerePromisedAndNeverMadeHoldUpNobody() async throws {
    let (lengths, _) = try await caches()
    let task: Task<Int, any Error>
    do {
      let group = FetchGroup(2)
      let members = group.members
      task = Task { try await FetchTicket.$current.withValue(FetchTicket(members)) { try await lengths.value(for: "four").value } }
      try await until { lengths.flights.waiterCounts.count == 1 }
      #expect(server.requests.isEmpty)
      withExtendedLifetime(group) {}
    }
    #expect(try await task.value == 4)
  }

}
