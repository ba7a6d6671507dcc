import Foundation
import LarderTesting
import Synchronization

@testable import Larder

typealias Cache = CachedRepository<String, Int>
typealias Entry = CachedEntry<String, Int>

/// A cache with a clock that stands still, a disk that can fail, and a source that answers the length of the key.
struct CacheWorld {
  let clock: ManualClock
  let source: ScriptedSource<String, Int>
  let disk: FaultInjectingBackend
  let storage: LocalRepository<Entry>
  let cache: Cache

  static let freshness = FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48), negative: .seconds(60), jitter: 0)

  init(
    freshness: FreshnessPolicy = Self.freshness, eviction: EvictionPolicy = .none, retry: RetryPolicy = .never,
    clock: ManualClock = ManualClock(), random: @escaping @Sendable () -> Double = { 0 },
    source: ScriptedSource<String, Int> = ScriptedSource { key, _ in .value(key.count) }
  ) async throws {
    self.clock = clock
    self.source = source
    disk = FaultInjectingBackend(InMemoryBackend())
    storage = try await LocalRepository(backend: disk, options: StoreOptions(checkpoint: .manual))
    cache = Cache(
      storage: storage, freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: source, random: random)
  }

  /// A cache over the same entries, as the next start of the process makes it.
  func restarted(
    freshness: FreshnessPolicy = Self.freshness, eviction: EvictionPolicy = .none, clock: ManualClock? = nil
  ) -> Cache {
    Cache(
      storage: storage, freshness: freshness, eviction: eviction, retry: .never, clock: clock ?? ManualClock(now: self.clock.now),
      source: source, random: { 0 })
  }

  /// How many wait for fetches.
  var waiterCount: Int { cache.flights.waiterCounts.reduce(0, +) }
  var flightCount: Int { cache.flights.waiterCounts.count }

  /// Waits until nothing is being fetched.
  func settle() async throws { try await until { flightCount == 0 } }
}

/// An error of a source.
struct Trouble: RemoteSourceError, Equatable {
  var isTransient = true
  var retryAfter: Duration?
  var name = "trouble"
}

/// Numbers in the order in which tasks have noted them.
final class Notes: Sendable {
  private let list = Mutex<[Int]>([])
  var numbers: [Int] { list.withLock { $0 } }
  func add(_ number: Int) { list.withLock { $0.append(number) } }
}

/// The error that an operation throws, if it does.
func failure<Result>(_ operation: () async throws -> Result) async -> (any Error)? {
  do {
    _ = try await operation()
    return nil
  } catch {
    return error
  }
}

/// A permit for as long as a test wants.
extension ConcurrencyLimit {
  func acquire() async throws {
    guard await semaphore.acquireUnlessCancelled() else { throw CancellationError() }
  }

  func release() { semaphore.release() }
}
