// Cache/ keeps the values of a remote source in a repository with their age. The steps of a call for a value are lookup, decision by the
// fetch policy, flight (the shared fetch), storing with eviction, and answer.
// Invariant: A value's state (fresh, stale or expired) is computed when the value is returned. A fetched value is committed before it is
// returned, unless storing fails.
// Called by apps. Writes of a cache go through the repository's commit queue, and lookups read the repository's published records.

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
/// A cached value is *fresh*, then *stale*, then *expired*, at the times that its ``FreshnessPolicy`` sets. Each call chooses between the
/// stored value and the source with a ``FetchPolicy``. Concurrent calls for one key share one fetch, which is cancelled when the last of
/// these calls is cancelled.
///
/// A fetched value is committed before it is returned. If the storage fails, for example on a full disk, a call that fetches a value does
/// not fail. A value that could not be stored is returned and kept in memory for a while, and ``statistics`` counts the error. A cache over
/// a read-only storage keeps fetched values in memory for a while, and counts no error.
///
/// Within one process the monotonic clock measures the age of values. Across launches and between processes the wall clock measures the
/// age. Setting the wall clock neither empties the cache nor keeps a value fresh. An entry whose fetch date is in the future counts as
/// stale, and expires after a while. The age of an entry that another cache stores in the same storage is computed from one reading of the
/// wall clock, when the entry's commit arrives.
///
/// An answer with a fresh value costs one look-up in a dictionary and one reading of the clock. If the store was written since the last
/// answer, an answer also costs one look-up in the published records. The first answer from a stored record also decodes the record. A
/// fetch costs a task and a commit. Memory holds the repository, and one object for each entry that was returned.
///
/// ## Threads and tasks
///
/// Call a cache from every thread, actor and task. `CachedRepository` is declared an `actor`, but it has no isolated state: every member is
/// `nonisolated`, so calls never queue behind each other on the actor. A call that is answered from storage runs on the caller's actor. A
/// fetch runs outside every actor, and so does your source.
///
/// ## When to use another type
///
/// - Use ``LocalRepository`` for data that your app owns. Use a cache only for values that can be fetched again.
/// - Use `URLCache` to keep HTTP responses as bytes, for as long as their HTTP headers allow.
/// - Send a plain request for a value that must be current and is not shown offline.
///
/// To keep a cache in one file with other data, pass a repository of a ``Store`` as `storage`. The cache does not repair a damaged file of
/// a ``Store``.
///
/// ## Avoid
///
/// - Do not let two caches share a repository. Give each cache a repository of its own.
/// - Do not keep user data in the file of a cache. ``open(jsonFile:options:)`` moves a damaged file aside and starts an empty cache.
/// - Do not fetch many keys one after the other. Use ``values(for:policy:maxConcurrentFetches:)``.
/// - Do not build a second fetch queue, retry loop or limit in your closure. ``RetryPolicy`` repeats failed fetches, and ``HostLimits``
///   queues and limits fetches.
/// - Do not keep an answer to check later whether it is still fresh. The age in an answer does not change. To get the current age of a
///   value, call ``value(for:policy:)`` again, or follow ``updates(for:)``.
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
  /// The repository in which the cache stores its entries.
  ///
  /// If you opened the repository yourself, close it with its own `close()`. If the cache has opened the repository, call ``close()`` of
  /// the cache.
  public nonisolated let storage: LocalRepository<CachedEntry<Key, Value>>
  nonisolated let freshness: FreshnessPolicy
  nonisolated let eviction: EvictionPolicy
  nonisolated let retry: RetryPolicy
  nonisolated let clock: any WallClock
  nonisolated let source: any RemoteSource<Key, Value>
  /// Largest number of keys in one request to the source, or `nil` for a source that fetches keys one by one.
  nonisolated let keysTogether: Int?
  /// True if the storage was opened read-only, so that the cache cannot store fetched values.
  nonisolated let isReadOnly: Bool
  /// The damaged files that opening has moved aside, or `nil` if no file was moved or you opened the storage yourself.
  public nonisolated let healing: OpenedCacheStorage<Key, Value>.Healing?
  /// Readings of the clocks at the creation of the cache, from which the age of older entries is computed, and the newest revision.
  nonisolated let start: CacheStart
  /// Returns a random number from 0 up to, but not including, 1, for jitter and the times between retries.
  nonisolated let random: @Sendable () -> Double
  nonisolated let state = Mutex(CacheState<Key, Value>())
  nonisolated let flights: Flights<Key, ResidentEntry<Key, Value>>
  /// An observer of commits that wakes the readers of ``updates(for:)``.
  nonisolated let announcements = KeyAnnouncements()
  /// An observer of commits that notes how the wall clock was set when the commits of other caches and processes arrived.
  nonisolated let arrivals: ArrivalClock

  /// Makes a cache of a remote source that stores its entries in a given repository.
  ///
  /// - Parameters:
  ///   - storage: Repository of the entries. ``open(jsonFile:options:)`` opens a repository whose damaged files are moved aside.
  ///   - freshness: Times for which values are fresh and for which they are usable.
  ///   - eviction: Limits of the cache's size. Without limits, every entry is kept.
  ///   - retry: Number of attempts of a fetch, and the times between the attempts.
  ///   - clock: Clock from which the cache reads the time. Pass a `ManualClock` in tests.
  ///   - source: Remote source of the values. Limit the requests to the source with ``RemoteSource/limited(by:weight:)``.
  public init(
    storage: LocalRepository<CachedEntry<Key, Value>>, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none,
    retry: RetryPolicy = .default, clock: any WallClock = SystemClock(), source: some RemoteSource<Key, Value>
  ) {
    self.init(
      storage: storage, freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: source,
      random: { Double.random(in: 0..<1) })
  }

  /// Makes a cache of a remote source with a storage that was opened for the cache.
  ///
  /// ``healing`` describes the damaged files that opening moved aside, if there were any.
  ///
  /// The parameters other than `opened` are the same as for ``init(storage:freshness:eviction:retry:clock:source:)``.
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

  /// Returns the value of a key, from storage or from the source as the fetch policy demands.
  ///
  /// An answer from storage costs one or two look-ups in memory and a reading of the clock.
  /// - Throws: The error of the source after the last retry. If ``HostLimits`` refuses a retry, the error of the previous attempt. A
  ///   ``CacheError``, for example if the policy forbids a fetch. `CancellationError` if the task is cancelled, which does not affect other
  ///   callers of the key.
  public nonisolated(nonsending) func value(for key: Key, policy: FetchPolicy = .cacheFirst) async throws -> Cached<Value> {
    let uptime = clock.uptime
    if let entry = freshEntry(key, policy, at: uptime), let value = entry.value { return entry.hit(value, at: uptime) }
    return try await answer(key, policy)
  }

  /// Returns a sequence of the current value of a key, and of a new answer whenever the value or its state changes.
  ///
  /// The sequence of updates fetches nothing. The sequence returns the values that other calls, such as ``value(for:policy:)``, have
  /// fetched, and does not begin with an expired value. The sequence reports at once that a value becomes stale or expires, and does not
  /// report that a value is removed. A slow reader gets the newest value only, so no values queue up for it. The sequence ends when the
  /// storage is closed, and when the reading task is cancelled. The cost of one reader does not depend on the number of readers, and a
  /// reader wakes only for changes of its own key.
  public nonisolated func updates(for key: Key) -> CachedUpdates<Value> {
    CachedUpdates { [self] in
      let reader = CachedReader(self, key)
      return { await reader.next() }
    }
  }

  /// Fetches the keys whose stored values are not fresh, and returns when each fetch has succeeded or failed.
  ///
  /// `prefetch` fetches at most six keys at a time. With a ``BatchRemoteSource``, it runs at most six requests at a time.
  public nonisolated(nonsending) func prefetch(_ keys: [Key]) async { _ = await values(for: keys) }

  /// Removes the stored entry of a key, and prevents a running fetch of the key from storing its result.
  ///
  /// The callers that wait for a running fetch still get the fetched value.
  /// - Throws: ``RepositoryError`` of ``LocalRepository/delete(_:ifRevision:durability:)``. If `invalidate` throws, the entry is still
  ///   stored. After the error `.outcomeUnknown`, however, the entry may be missing when the store is opened again.
  public nonisolated(nonsending) func invalidate(_ key: Key) async throws {
    // The running fetches of the key are invalidated before the deletion. If the deletion came first, a fetch that ends between the
    // deletion and the invalidation would store its value after the deletion.
    flights.invalidateFlights(of: key)
    try await removeEntry(of: key)
    // The removal of an unsaved value changes no record, so no commit wakes the readers of the key.
    wakeReaders(of: key)
  }

  /// Counts of the cache's hits, misses, fetches and errors since the cache was made.
  public nonisolated var statistics: CacheStatistics { state.withLock { $0.statistics } }

  /// Closes the storage of the cache.
  ///
  /// Call `close()` for a cache that was opened together with its storage, as by ``open(jsonFile:options:)``. Closing the cache calls
  /// ``LocalRepository/close()`` of its storage.
  ///
  /// - Throws: The error of closing the storage.
  public nonisolated(nonsending) func close() async throws(RepositoryError) { try await storage.close() }
}
