import Foundation
import Larder
import LarderTesting

enum LimitSmoke {
  /// A source of several keys a request.
  struct Batches: BatchRemoteSource {
    var maxKeysPerRequest: Int { 2 }
    func canShareRequest(_ key: Int, _ other: Int) -> Bool { true }
    func requestWeight(of keys: [Int]) -> Double { 1 }
    func fetch(_ requests: [FetchRequest<Int>]) async throws -> [Int: Result<Fetched<Jar>, any Error>] {
      Dictionary(requests.map { ($0.key, .success(.value(.plum, validator: $0.validator))) }) { first, _ in first }
    }
  }

  /// An error of a host.
  struct HostDown: RemoteSourceError {
    var isTransient: Bool { true }
  }

  static func run(_ directory: URL) async throws {
    let clock = ManualClock()
    let breaker = CircuitBreaker(failureLimit: 1, coolDown: .seconds(1), maximumCoolDown: .seconds(2), clock: clock)
    try expect(breaker.failureLimit == 1 && breaker.phase == .closed)
    try await expect(breaker.run { 1 } == 1)
    do { try await breaker.run { throw HostDown() } } catch is HostDown {}
    try expect(breaker.phase == .open(until: clock.now.addingTimeInterval(1)))
    clock.advance(by: .seconds(1))
    try expect(breaker.phase == .halfOpen)
    try expect(HostDown().countsAgainstBreaker && HostDown().isTransient && !HostDown().mayConcernOneKey && HostDown().retryAfter == nil)
    let concurrency = ConcurrencyLimit(2)
    try await expect(concurrency.withPermit { 1 } == 1, concurrency.limit == 2, concurrency.waitingCount == 0)
    let bucket = TokenBucket(4, per: .seconds(4), maximumWait: .seconds(1), clock: clock)
    try await bucket.take()
    try await bucket.take(2)
    try expect(bucket.available == 1 && bucket.capacity == 4 && bucket.maximumWait == .seconds(1))
    clock.advance(by: .seconds(4))
    let limits = HostLimits(concurrency: concurrency, quotas: [bucket], breaker: breaker)
    try expect(limits.quotas.count == 1 && limits.concurrency != nil && limits.breaker != nil)
    try await expect(limits.run(weight: 1) { 3 } == 3)

    clock.advance(by: .seconds(60))
    let request = FetchRequest(key: 3, validator: "v")
    try expect(request.key == 3 && request.validator == "v")
    try await expect(jar(of: Batches(), 1) == .plum)
    try expect(Batches().canShareRequest(1, 2) && Batches().maxKeysPerRequest == 2 && Batches().requestWeight(of: [1]) == 1)
    let gathered: GatheredSource<Int, Jar> = Batches().limited(by: limits)
    let weighed = Batches().limited(by: HostLimits(), weight: { _ in 2 })
    try await expect(jar(of: weighed, 1) == .plum)
    let mapped = gathered.mapped(key: { (key: String) in key.utf8.count }, value: { $0.label })
    let group = FetchGroup(2)
    async let first = group.run { try await gathered.fetch(1, validator: nil) }
    async let second = group.run { try await mapped.fetch("ab", validator: nil) }
    guard case .value(let plum, _, _) = try await first, case .value(let label, _, _) = try await second else {
      throw SmokeFailure(description: "expected values")
    }
    try expect(plum == .plum && label == "plum jam")
    let single = ScriptedSource<Int, Jar> { _, _ in .value(.fig) }
    try await expect(jar(of: single.limited(by: HostLimits()) { _ in 1 }, 1) == .fig)
  }

  private static func jar(of source: some RemoteSource<Int, Jar>, _ key: Int) async throws -> Jar? {
    if case .value(let jar, _, _) = try await source.fetch(key, validator: nil) { jar } else { nil }
  }
}
