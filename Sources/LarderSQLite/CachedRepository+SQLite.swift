public import Foundation
public import Larder

extension CachedRepository {
  /// Opens or creates a cache in a SQLite database, and heals it if it is damaged.
  ///
  /// ```swift
  /// let cache = try await CachedRepository.open(
  ///   sqliteFile: url, freshness: FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48)), source: server)
  /// ```
  ///
  /// Files that were set aside for that are listed in `healing`. Close the cache with `close()`.
  /// - Parameters:
  ///   - sqliteFile: The file.
  ///   - freshness: How long values are fresh, and how long usable.
  ///   - eviction: How much is kept: everything unless given.
  ///   - retry: How often a failed fetch is tried again.
  ///   - clock: The time; a test gives a `ManualClock`.
  ///   - options: How the file is opened; writes are `.buffered` unless given.
  ///   - source: Where values come from.
  /// - Throws: What `SQLiteBackend.open` throws, except `.corrupted` and `.dataMissing`, which are healed unless the access is
  ///   `.readOnly`.
  public static func open(
    sqliteFile: URL, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), options: StoreOptions = StoreOptions(durability: .buffered),
    source: some RemoteSource<Key, Value>
  ) async throws(RepositoryError) -> CachedRepository {
    let opened = try await open(file: sqliteFile, options: options) { SQLiteBackend(file: $0) }
    return CachedRepository(opened: opened, freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: source)
  }

  /// Opens or creates a cache in a SQLite database whose values one function fetches.
  ///
  /// ```swift
  /// let cache = try await CachedRepository.open(sqliteFile: url, freshness: .hours(1)) { id in try await fetchForecast(id) }
  /// ```
  ///
  /// - Parameters:
  ///   - sqliteFile: The file.
  ///   - freshness: How long values are fresh, and how long usable.
  ///   - eviction: How much is kept: everything unless given.
  ///   - retry: How often a failed fetch is tried again.
  ///   - clock: The time; a test gives a `ManualClock`.
  ///   - options: How the file is opened; writes are `.buffered` unless given.
  ///   - fetch: Returns the value of a key from its source, or throws.
  /// - Throws: As the call with a source.
  public static func open(
    sqliteFile: URL, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), options: StoreOptions = StoreOptions(durability: .buffered),
    fetch: @escaping @Sendable (Key) async throws -> Value
  ) async throws(RepositoryError) -> CachedRepository {
    try await open(
      sqliteFile: sqliteFile, freshness: freshness, eviction: eviction, retry: retry, clock: clock, options: options,
      source: FunctionSource(fetch))
  }
}
