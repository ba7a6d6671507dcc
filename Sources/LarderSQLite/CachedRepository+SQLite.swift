public import Foundation
public import Larder

extension CachedRepository {
  /// Opens or creates a cache in a SQLite database, and replaces a damaged database by an empty one.
  ///
  /// ```swift
  /// let cache = try await CachedRepository.open(
  ///   sqliteFile: url, freshness: FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48)), source: server)
  /// ```
  ///
  /// If the database is damaged, the opening renames its files and creates an empty cache. The property `healing` of the cache lists the
  /// renamed files. Close the cache with `close()`.
  /// - Parameters:
  ///   - sqliteFile: The database file.
  ///   - freshness: The age up to which a value is fresh, and the age up to which it is usable.
  ///   - eviction: The limits of the cache's size. Without limits the cache keeps every value.
  ///   - retry: The number and the delays of further attempts after a failed fetch.
  ///   - clock: The clock for the ages of values. Use a `ManualClock` in tests.
  ///   - options: The options of the store. By default, writes are `.buffered`.
  ///   - source: The source of missing and outdated values.
  /// - Throws: the errors of `SQLiteBackend.open`. A cache whose opening fails with `.corrupted` or `.dataMissing` is replaced by an empty
  ///   one, unless the access is `.readOnly`.
  public static func open(
    sqliteFile: URL, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), options: StoreOptions = StoreOptions(durability: .buffered),
    source: some RemoteSource<Key, Value>
  ) async throws(RepositoryError) -> CachedRepository {
    let opened = try await open(file: sqliteFile, options: options) { SQLiteBackend(file: $0) }
    return CachedRepository(opened: opened, freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: source)
  }

  /// Opens or creates a cache in a SQLite database, with one function that fetches a missing or outdated value.
  ///
  /// ```swift
  /// let cache = try await CachedRepository.open(sqliteFile: url, freshness: .hours(1)) { id in try await fetchForecast(id) }
  /// ```
  ///
  /// - Parameters:
  ///   - sqliteFile: The database file.
  ///   - freshness: The age up to which a value is fresh, and the age up to which it is usable.
  ///   - eviction: The limits of the cache's size. Without limits the cache keeps every value.
  ///   - retry: The number and the delays of further attempts after a failed fetch.
  ///   - clock: The clock for the ages of values. Use a `ManualClock` in tests.
  ///   - options: The options of the store. By default, writes are `.buffered`.
  ///   - fetch: Returns the value of a key from its source, or throws.
  /// - Throws: the errors of ``open(sqliteFile:freshness:eviction:retry:clock:options:source:)``.
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
