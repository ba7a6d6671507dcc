// Cache/ keeps values of a remote source with a stated age, in a repository.
// Invariant: every answer's state is derived from the clock when it is given, and every stored value is read back before it is served.
// Called by apps; uses LocalRepository, and nothing of the files below it.

/// Values of a remote source, kept on the device with a stated age.
public actor CachedRepository<Key: Hashable & Codable & Sendable, Value: Codable & Sendable> {
  /// Where the entries are.
  public nonisolated let storage: LocalRepository<CachedEntry<Key, Value>>

  /// Makes a cache over a repository, which should be its alone.
  public init(
    storage: LocalRepository<CachedEntry<Key, Value>>, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none,
    retry: RetryPolicy = .default, clock: any WallClock = SystemClock(), source: some RemoteSource<Key, Value>
  ) {
    self.storage = storage
  }

  /// The value of a key.
  public nonisolated(nonsending) func value(for key: Key, policy: FetchPolicy = .cacheFirst) async throws -> Cached<Value> {
    throw CacheError.notCached
  }

  /// The values of several keys.
  public nonisolated(nonsending) func values(
    for keys: [Key], policy: FetchPolicy = .cacheFirst, maxConcurrentFetches: Int = 6
  ) async -> [Key: Result<Cached<Value>, any Error>] { [:] }

  /// The value of a key now, and whenever it differs.
  public nonisolated func updates(for key: Key) -> CachedUpdates<Value> { CachedUpdates() }

  /// Fetches what is not fresh.
  public nonisolated(nonsending) func prefetch(_ keys: [Key]) async {}

  /// Forgets a key.
  public nonisolated(nonsending) func invalidate(_ key: Key) async throws {}

  /// Forgets everything.
  public nonisolated(nonsending) func removeAll() async throws {}

  /// Gives memory back.
  public nonisolated(nonsending) func relieve(_ pressure: MemoryPressure) async {}

  /// What the cache has done.
  public nonisolated var statistics: CacheStatistics { CacheStatistics() }
}
