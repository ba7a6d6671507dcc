public import Foundation

/// A source that is one function of a key: what a closure given to a cache becomes.
///
/// It keeps no validators, so every fetch brings the whole value. Use a type that conforms to ``RemoteSource`` for ETags, for an expiry
/// that the provider states, and for keys that have no value.
public struct FunctionSource<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  private let function: @Sendable (Key) async throws -> Value

  /// Makes a source of a function.
  ///
  /// - Parameter function: Returns the value of a key, or throws. Its errors mean what those of ``RemoteSource/fetch(_:validator:)`` mean.
  public init(_ function: @escaping @Sendable (Key) async throws -> Value) { self.function = function }

  /// Returns what the function returns.
  ///
  /// - Throws: what the function throws.
  public func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> { .value(try await function(key)) }
}

extension CachedRepository {
  /// Opens or creates a cache in a JSON file whose values one function fetches.
  ///
  /// ```swift
  /// let cache = try await CachedRepository.open(jsonFile: url, freshness: .hours(1)) { id in try await fetchForecast(id) }
  /// ```
  ///
  /// Otherwise as ``open(jsonFile:freshness:eviction:retry:clock:options:source:)``.
  /// - Parameters:
  ///   - jsonFile: The file.
  ///   - freshness: How long values are fresh, and how long usable.
  ///   - eviction: How much is kept: everything unless given.
  ///   - retry: How often a failed fetch is tried again.
  ///   - clock: The time; a test gives a `ManualClock`.
  ///   - options: How the file is opened; writes are `.buffered` unless given.
  ///   - fetch: Returns the value of a key from its source, or throws. It is called as ``RemoteSource/fetch(_:validator:)`` is.
  /// - Throws: As ``open(jsonFile:options:)``.
  public static func open(
    jsonFile: URL, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), options: StoreOptions = StoreOptions(durability: .buffered),
    fetch: @escaping @Sendable (Key) async throws -> Value
  ) async throws(RepositoryError) -> CachedRepository {
    try await open(
      jsonFile: jsonFile, freshness: freshness, eviction: eviction, retry: retry, clock: clock, options: options,
      source: FunctionSource(fetch))
  }

  /// Makes a cache in memory whose values one function fetches; see ``inMemory(freshness:eviction:retry:clock:source:)``.
  ///
  /// - Throws: What ``LocalRepository/init(inMemory:)`` throws.
  public static func inMemory(
    freshness: FreshnessPolicy, eviction: EvictionPolicy = .none, retry: RetryPolicy = .default,
    clock: any WallClock = SystemClock(), fetch: @escaping @Sendable (Key) async throws -> Value
  ) async throws(RepositoryError) -> CachedRepository {
    try await inMemory(freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: FunctionSource(fetch))
  }

  /// Makes a cache over a repository whose values one function fetches; see ``init(storage:freshness:eviction:retry:clock:source:)``.
  public init(
    storage: LocalRepository<CachedEntry<Key, Value>>, freshness: FreshnessPolicy, eviction: EvictionPolicy = .none,
    retry: RetryPolicy = .default, clock: any WallClock = SystemClock(), fetch: @escaping @Sendable (Key) async throws -> Value
  ) {
    self.init(
      storage: storage, freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: FunctionSource(fetch))
  }
}
