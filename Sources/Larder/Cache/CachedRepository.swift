// Cache/ keeps values of a remote source with a stated age, in a repository: lookup, then flight, storing (with eviction), answer.
// Invariant: an answer's state follows from the clock when it is given, and a value is committed before it is served, unless storing fails.
// Called by apps. Storing and eviction write through the repository's commit queue, and lookup reads its published records; opening uses
// FileSystem to set damaged files aside.

internal import Foundation
internal import Synchronization

/// Values of a remote source, kept on the device with a stated age.
///
/// ```swift
/// let cache = try await CachedRepository.open(jsonFile: url, freshness: .hours(1)) { id in try await fetchForecast(id) }
/// let forecast = try await cache.value(for: spot.id)
/// print(forecast.value, forecast.age, forecast.state)
/// ```
///
/// A value is *fresh*, then *stale*, then *expired*; see ``FreshnessPolicy``. ``FetchPolicy`` says what one call wants
/// of the stored value and of the source. Callers that want one key at the same time share one fetch, which is cancelled
/// when the last of them is. A fetched value is committed before it is served. A storage that fails, as on a full disk,
/// fails no call: the value is served, kept in memory for a while, and the error counted in ``statistics``. Over a
/// read-only storage the values are kept in memory in the same way, and no error is counted.
///
/// Age is counted by the monotonic clock in this process, and by the wall clock across restarts and between processes.
/// So setting the clock neither empties the cache nor keeps anything fresh; an entry from the future is stale, and
/// expires. What another cache over the same storage has stored is dated by one reading of the wall clock, when it
/// arrives.
///
/// Give each cache a repository of its own.
///
/// ## Cost
///
/// An answer with a fresh value takes one look into a dictionary, one into the published records if something was written
/// since the last one, and a reading of the clock; it never leaves the caller's actor. The first answer with a record also
/// decodes it. A fetch costs a task and a commit. Memory: what the repository takes, and an object for each entry that was
/// answered with.
///
/// ## Topics
///
/// ### Opening
/// - ``open(jsonFile:freshness:eviction:retry:clock:options:fetch:)``
/// - ``open(jsonFile:freshness:eviction:retry:clock:options:source:)``
/// - ``inMemory(freshness:eviction:retry:clock:fetch:)``
/// - ``inMemory(freshness:eviction:retry:clock:source:)``
/// - ``init(storage:freshness:eviction:retry:clock:fetch:)``
/// - ``init(storage:freshness:eviction:retry:clock:source:)``
/// - ``init(opened:freshness:eviction:retry:clock:source:)``
/// - ``open(jsonFile:options:)``
/// - ``open(file:options:backend:)``
/// - ``healing``
/// - ``close()``
///
/// ### Getting values
/// - ``value(for:policy:)``
/// - ``values(for:policy:maxConcurrentFetches:)``
/// - ``prefetch(_:)``
/// - ``updates(for:)``
/// - ``FetchPolicy``
/// - ``Cached``
///
/// ### Sources
/// - ``FunctionSource``
/// - ``RemoteSource``
/// - ``BatchRemoteSource``
/// - ``FetchGroup``
/// - ``HostLimits``
/// - ``RetryPolicy``
///
/// ### Removing values
/// - ``invalidate(_:)``
/// - ``removeAll()``
/// - ``relieve(_:)``
/// - ``EvictionPolicy``
///
/// ### Looking inside
/// - ``statistics``
/// - ``storage``
/// - ``CachedEntry``
public actor CachedRepository<Key: Hashable & Codable & Sendable, Value: Codable & Sendable> {
  /// The repository of the entries; close it where it was opened, or with ``close()``.
  public nonisolated let storage: LocalRepository<CachedEntry<Key, Value>>
  nonisolated let freshness: FreshnessPolicy
  nonisolated let eviction: EvictionPolicy
  nonisolated let retry: RetryPolicy
  nonisolated let clock: any WallClock
  nonisolated let source: any RemoteSource<Key, Value>
  /// The number of keys that one request of the source takes; `nil` for a source that fetches them one by one.
  nonisolated let keysTogether: Int?
  /// Whether nothing can be stored.
  nonisolated let isReadOnly: Bool
  /// The damage that opening the cache's own file has set aside; `nil` when there was none, and for a storage that was opened apart.
  public nonisolated let healing: OpenedCacheStorage<Key, Value>.Healing?
  nonisolated let start: CacheStart
  /// A number from 0 up to 1, for jitter.
  nonisolated let random: @Sendable () -> Double
  nonisolated let state = Mutex(CacheState<Key, Value>())
  /// The observer of commits that wakes the readers of `updates`.
  nonisolated let announcements = KeyAnnouncements()
  /// The observer of commits that dates those of other caches and processes.
  nonisolated let arrivals: ArrivalClock

  /// Makes a cache of a source over a repository.
  ///
  /// - Parameters:
  ///   - storage: Where the entries are. ``open(jsonFile:options:)`` opens one that heals itself.
  ///   - freshness: How long values are fresh, and how long usable.
  ///   - eviction: How much is kept: everything unless given.
  ///   - retry: How often a failed fetch is tried again.
  ///   - clock: The time; a test gives a `ManualClock`.
  ///   - source: Where values come from. Bound it with ``RemoteSource/limited(by:weight:)``.
  public init(
    storage: LocalRepository<CachedEntry<Key, Value>>, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none,
    retry: RetryPolicy = .default, clock: any WallClock = SystemClock(), source: some RemoteSource<Key, Value>
  ) {
    self.init(
      storage: storage, freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: source,
      random: { Double.random(in: 0..<1) })
  }

  /// Makes a cache of a source over a storage of its own; what was put aside when that was opened is in ``healing``.
  ///
  /// The parameters are those of ``init(storage:freshness:eviction:retry:clock:source:)``.
  public init(
    opened: OpenedCacheStorage<Key, Value>, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none,
    retry: RetryPolicy = .default, clock: any WallClock = SystemClock(), source: some RemoteSource<Key, Value>
  ) {
    self.init(
      storage: opened.storage, freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: source,
      random: { Double.random(in: 0..<1) }, healing: opened.healing)
  }

  init(
    storage: LocalRepository<CachedEntry<Key, Value>>, freshness: FreshnessPolicy, eviction: EvictionPolicy, retry: RetryPolicy,
    clock: any WallClock, source: some RemoteSource<Key, Value>, random: @escaping @Sendable () -> Double,
    healing: OpenedCacheStorage<Key, Value>.Healing? = nil
  ) {
    self.storage = storage
    self.freshness = freshness
    self.eviction = eviction
    self.retry = retry
    self.clock = clock
    if let source = source as? any BatchRemoteSource<Key, Value> {
      self.source = source.limited(by: HostLimits())
    } else {
      self.source = source
    }
    keysTogether = (self.source as? any GatheringSource)?.maxKeysTogether
    isReadOnly = storage.core.options.access == .readOnly
    self.healing = healing
    self.random = random
    start = CacheStart(wall: clock.now, uptime: clock.uptime, revision: storage.snapshot.revision)
    arrivals = ArrivalClock(start, clock: clock)
    storage.core.hub.register(announcements, for: storage.collection)
    storage.core.hub.register(arrivals, for: storage.collection)
  }

  /// Returns the value of a key, from storage or from the source as the policy says.
  ///
  /// Cost of an answer from storage: one or two look-ups and a reading of the clock.
  /// - Throws: what the source throws after its retries, or before one that ``HostLimits`` do not let through; ``CacheError``;
  ///   `CancellationError` when the task is cancelled, which leaves other callers of the key alone.
  public nonisolated(nonsending) func value(for key: Key, policy: FetchPolicy = .cacheFirst) async throws -> Cached<Value> {
    let uptime = clock.uptime
    if let entry = freshEntry(key, policy, at: uptime), let value = entry.value { return entry.hit(value, at: uptime) }
    return try await answer(key, policy)
  }

  /// Returns the value of a key now, and again whenever the value or its state differs.
  ///
  /// It fetches nothing: it shows what ``value(for:policy:)`` and others have brought, and does not begin with a value
  /// that has expired. A value becoming stale or expired is told when it happens; one that is removed is not. A slow
  /// reader gets the newest only, so nothing piles up. The sequence ends when the storage is closed and when the
  /// reading task is cancelled. A reader costs the same however many there are, and is woken for its key only.
  public nonisolated func updates(for key: Key) -> CachedUpdates<Value> {
    CachedUpdates { [self] in
      let reader = CachedReader(self, key)
      return { await reader.next() }
    }
  }

  /// Fetches what is not fresh, six keys (over a ``BatchRemoteSource``, six requests) at a time, and returns when all
  /// are there or have failed.
  public nonisolated(nonsending) func prefetch(_ keys: [Key]) async { _ = await values(for: keys) }

  /// Removes what is stored of a key; a fetch that is under way is not stored either, only given to its callers.
  ///
  /// - Throws: ``RepositoryError`` of ``LocalRepository/delete(_:ifRevision:durability:)``; the entry is then still there.
  public nonisolated(nonsending) func invalidate(_ key: Key) async throws {
    state.withLock { $0.invalidateFlights(of: key) }
    try await remove(key)
    wakeReaders(of: key)
  }

  /// Counts of what the cache has done since it was made.
  public nonisolated var statistics: CacheStatistics { state.withLock { $0.statistics } }

  /// Closes the storage, for a cache that was opened in one step; see ``LocalRepository/close()``.
  ///
  /// - Throws: What closing the storage throws.
  public nonisolated(nonsending) func close() async throws(RepositoryError) { try await storage.close() }
}
