// Cache/ keeps the values of a remote source in a repository with their age. The steps of a call are lookup, decision by the policy, flight
// (the shared fetch), storing with eviction, and answer.
// Invariant: A value's state (fresh, stale or expired) is computed when the value is returned. A fetched value is committed before it is
// returned, unless storing fails.
// Called by apps. Writes go through the repository's commit queue, and lookups read its published records.

internal import Foundation
internal import Synchronization

/// A cache of a remote source's values that stores each value on the device with its age.
///
/// ```swift
/// // A cache in a JSON file, over a closure that fetches one value
/// let cache = try await CachedRepository.open(jsonFile: url, freshness: .hours(1)) { id in try await fetchForecast(id) }
///
/// // The same over a type that sends ETags and reads the server's expiry
/// let hourly = try await CachedRepository.open(jsonFile: otherURL, freshness: .hours(1), source: server)
///
/// // A cache without a file, for tests
/// let sample = try await CachedRepository.inMemory(freshness: .hours(1)) { id in try await fetchForecast(id) }
/// ```
///
/// Open a cache once, and pass it to all of your code:
///
/// ```swift
/// let forecast = try await cache.value(for: spot.id)
/// print(forecast.value, forecast.age, forecast.state)
/// ```
///
/// ## Promises and cost
///
/// A value is *fresh*, then *stale*, then *expired*, as its ``FreshnessPolicy`` says. Each call chooses between the stored value and the
/// source with a ``FetchPolicy``. Concurrent calls for one key share one fetch, which is cancelled when the last of these calls is
/// cancelled.
///
/// A fetched value is committed before it is returned. If the storage fails, for example on a full disk, no call fails. A value that could
/// not be stored is returned and kept in memory for a while, and ``statistics`` counts the error. A cache over a read-only storage keeps
/// fetched values in memory for a while, and counts no error.
///
/// Within this process the monotonic clock measures age. Across launches and between processes the wall clock measures age. Setting the
/// wall clock neither empties the cache nor keeps a value fresh. An entry whose date is in the future counts as stale, and expires after a
/// while. An entry that another cache stores in the same storage is dated by one reading of the wall clock, when its commit arrives.
///
/// An answer with a fresh value costs one look-up in a dictionary and one reading of the clock. If the store was written since the last
/// answer, an answer also costs one look-up in the published records. The first answer from a record also decodes the record. A fetch costs
/// a task and a commit. Memory holds the repository, and one object for each entry that was returned.
///
/// ## Threads and tasks
///
/// Call a cache from every thread, actor and task. It is declared an `actor`, but it has no isolated state: every member is `nonisolated`,
/// so calls never queue behind each other on the actor. An answer from storage stays on the caller's actor. A fetch runs away from every
/// actor, and so does your source.
///
/// ## When to use another type
///
/// - Use ``LocalRepository`` for data that your app owns. The contents of a cache must be possible to fetch again.
/// - Use `URLCache` to keep responses as bytes, for as long as their HTTP headers say.
/// - Send a plain request for a value that must be current and is not shown offline.
///
/// To keep a cache in one file with other data, pass a repository of a ``Store`` as `storage`. The cache does not repair a damaged file of
/// a ``Store``.
///
/// ## Avoid
///
/// - Do not let two caches share a repository. Give each cache a repository of its own.
/// - Do not keep user data in the file of a cache. ``open(jsonFile:options:)`` moves a damaged file aside and starts an empty one.
/// - Do not fetch many keys one after the other. Use ``values(for:policy:maxConcurrentFetches:)``.
/// - Do not build a second fetch queue, retry loop or limit in your closure. ``RetryPolicy`` repeats failed fetches, and ``HostLimits``
///   queues and limits fetches.
/// - Do not keep an answer to see whether it is still fresh. The age in an answer does not change. Call ``value(for:policy:)`` again, or
///   follow ``updates(for:)``.
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
  /// The repository of the entries.
  ///
  /// Close the storage where it was opened, or with ``close()``.
  public nonisolated let storage: LocalRepository<CachedEntry<Key, Value>>
  nonisolated let freshness: FreshnessPolicy
  nonisolated let eviction: EvictionPolicy
  nonisolated let retry: RetryPolicy
  nonisolated let clock: any WallClock
  nonisolated let source: any RemoteSource<Key, Value>
  /// Number of keys that one request of the source takes, or `nil` for a source that fetches keys one by one.
  nonisolated let keysTogether: Int?
  /// True if the storage was opened read-only, so that nothing can be stored.
  nonisolated let isReadOnly: Bool
  /// The damaged files that opening the cache moved aside, or `nil` if there were none or the storage was opened separately.
  public nonisolated let healing: OpenedCacheStorage<Key, Value>.Healing?
  /// Readings of the clocks and the revision at the creation of the cache, from which the age of older entries is computed.
  nonisolated let start: CacheStart
  /// Returns a random number from 0 up to 1, for jitter.
  nonisolated let random: @Sendable () -> Double
  nonisolated let state = Mutex(CacheState<Key, Value>())
  nonisolated let flights: Flights<Key, ResidentEntry<Key, Value>>
  /// Observer of commits that wakes the readers of ``updates(for:)``.
  nonisolated let announcements = KeyAnnouncements()
  /// Observer of commits that dates the commits of other caches and processes.
  nonisolated let arrivals: ArrivalClock

  /// Makes a cache of a source over a repository.
  ///
  /// - Parameters:
  ///   - storage: Repository of the entries. ``open(jsonFile:options:)`` opens a repository that repairs itself.
  ///   - freshness: How long values are fresh, and how long usable.
  ///   - eviction: Limits of the size. Without limits, every entry is kept.
  ///   - retry: How often a failed fetch is tried again.
  ///   - clock: Source of the time. Pass a `ManualClock` in tests.
  ///   - source: Source of the values. Limit its requests with ``RemoteSource/limited(by:weight:)``.
  public init(
    storage: LocalRepository<CachedEntry<Key, Value>>, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none,
    retry: RetryPolicy = .default, clock: any WallClock = SystemClock(), source: some RemoteSource<Key, Value>
  ) {
    self.init(
      storage: storage, freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: source,
      random: { Double.random(in: 0..<1) })
  }

  /// Makes a cache of a source over a storage that was opened for this cache.
  ///
  /// ``healing`` describes the damaged files that opening moved aside, if there were any.
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
    // Only a ``GatheredSource`` gathers several keys into one request, so a ``BatchRemoteSource`` that is not gathered is wrapped in a
    // ``GatheredSource`` without limits.
    if let source = source as? any BatchRemoteSource<Key, Value> {
      self.source = source.limited(by: HostLimits())
    } else {
      self.source = source
    }
    keysTogether = (self.source as? any GatheringSource)?.maxKeysTogether
    isReadOnly = storage.core.options.access == .readOnly
    self.healing = healing
    self.random = random
    flights = Flights(clock: clock, backOff: max(retry.cap, .seconds(1)))
    start = CacheStart(wall: clock.now, uptime: clock.uptime, revision: storage.snapshot.revision)
    arrivals = ArrivalClock(start, clock: clock)
    storage.core.hub.register(announcements, for: storage.collection)
    storage.core.hub.register(arrivals, for: storage.collection)
  }

  /// Returns the value of a key, from storage or from the source as the policy says.
  ///
  /// An answer from storage costs one or two look-ups and a reading of the clock.
  /// - Throws: The error of the source after its retries, or of the attempt before one that ``HostLimits`` refused. ``CacheError``.
  ///   `CancellationError` if the task is cancelled, which does not affect other callers of the key.
  public nonisolated(nonsending) func value(for key: Key, policy: FetchPolicy = .cacheFirst) async throws -> Cached<Value> {
    let uptime = clock.uptime
    if let entry = freshEntry(key, policy, at: uptime), let value = entry.value { return entry.hit(value, at: uptime) }
    return try await answer(key, policy)
  }

  /// Returns the value of a key now, and again whenever the value or its state changes.
  ///
  /// The sequence fetches nothing. The sequence shows the values that other calls, such as ``value(for:policy:)``, have fetched, and does
  /// not begin with an expired value. The sequence reports at once that a value becomes stale or expires, and does not report that a value
  /// is removed. A slow reader gets the newest value only, so nothing queues up. The sequence ends when the storage is closed, and when the
  /// reading task is cancelled. The cost of one reader does not depend on the number of readers, and a reader wakes only for changes of its
  /// own key.
  public nonisolated func updates(for key: Key) -> CachedUpdates<Value> {
    CachedUpdates { [self] in
      let reader = CachedReader(self, key)
      return { await reader.next() }
    }
  }

  /// Fetches the keys that are not fresh, and returns when all are stored or have failed.
  ///
  /// Six keys are fetched at a time, or six requests over a ``BatchRemoteSource``.
  public nonisolated(nonsending) func prefetch(_ keys: [Key]) async { _ = await values(for: keys) }

  /// Removes the stored entry of a key, and prevents a running fetch of the key from storing its result.
  ///
  /// The callers of a running fetch still get the fetched value.
  /// - Throws: ``RepositoryError`` of ``LocalRepository/delete(_:ifRevision:durability:)``. If the call throws, the entry is still stored.
  public nonisolated(nonsending) func invalidate(_ key: Key) async throws {
    // The flights are invalidated before the deletion. Otherwise a fetch that ends between the deletion and the invalidation would store
    // its value after the deletion.
    flights.invalidateFlights(of: key)
    try await removeEntry(of: key)
    // The removal of an unsaved value changes no record, so no commit wakes the readers of the key.
    wakeReaders(of: key)
  }

  /// Counts of the cache's hits, misses, fetches and errors since it was made.
  public nonisolated var statistics: CacheStatistics { state.withLock { $0.statistics } }

  /// Closes the storage of a cache that was opened together with its storage, as by ``open(jsonFile:options:)``.
  ///
  /// See ``LocalRepository/close()``.
  ///
  /// - Throws: The error of closing the storage.
  public nonisolated(nonsending) func close() async throws(RepositoryError) { try await storage.close() }
}
