/// Counts of a cache's answers, fetches and errors since the cache was made.
public struct CacheStatistics: Hashable, Sendable {
  /// Causes for which a cache evicts an entry.
  public enum EvictionCause: String, Hashable, Sendable, Codable, CaseIterable, CodingKeyRepresentable {
    /// The number of entries would have exceeded ``EvictionPolicy/countLimit``.
    case count
    /// All entries together would have exceeded ``EvictionPolicy/byteLimit``, or one value alone would have exceeded it.
    case bytes
    /// The entry had provably expired when room was needed for a new entry or when the app called ``CachedRepository/relieve(_:)``.
    case expired
    /// The app called ``CachedRepository/relieve(_:)`` with ``MemoryPressure/critical``.
    case memoryPressure
  }

  /// Number of answers with a fresh value from storage.
  public internal(set) var hits = 0
  /// Number of calls that found no usable value in storage and therefore needed a fetch.
  ///
  /// Calls with ``FetchPolicy/networkOnly`` or ``FetchPolicy/cacheOnly`` are not counted.
  public internal(set) var misses = 0
  /// Number of answers with a stale value from storage.
  public internal(set) var staleServes = 0
  /// Number of calls that threw ``CacheError/absent(reason:since:)`` without a request, because the source's "no value" was stored.
  public internal(set) var negativeHits = 0
  /// Number of attempts to fetch a key from the source, in which each retry counts.
  public internal(set) var fetches = 0
  /// Number of times that the source answered "not modified".
  public internal(set) var notModified = 0
  /// Number of failed attempts to fetch a key from the source, in which each retry counts.
  ///
  /// Cancelled attempts are not counted. An attempt that ``HostLimits`` refuses counts as a failed attempt, although no request is sent.
  public internal(set) var fetchErrors = 0
  /// Number of failed reads and writes of the storage.
  ///
  /// A fetch returns the fetched value even if storing the value fails.
  public internal(set) var storageErrors = 0
  /// Error code of the newest failed read or write of the storage, or `nil`.
  public internal(set) var lastStorageError: RepositoryError.Code?
  /// Number of evicted entries, by the cause of the eviction.
  ///
  /// Entries that ``CachedRepository/invalidate(_:)`` or ``CachedRepository/removeAll()`` removes are not counted.
  public internal(set) var evictions: [EvictionCause: Int] = [:]

  /// Creates statistics in which all counts are zero.
  public init() {}

  /// Returns the sums of the counts of two caches or of two launches of the app.
  ///
  /// The sum has the ``lastStorageError`` of `second`, or the ``lastStorageError`` of `first` if `second` has none.
  public static func + (first: CacheStatistics, second: CacheStatistics) -> CacheStatistics {
    var sum = first
    sum += second
    return sum
  }

  /// Adds the counts of another cache, or of an earlier launch of the app.
  public static func += (sum: inout CacheStatistics, other: CacheStatistics) {
    for count in counts { sum[keyPath: count.path] += other[keyPath: count.path] }
    sum.lastStorageError = other.lastStorageError ?? sum.lastStorageError
    sum.evictions.merge(other.evictions, uniquingKeysWith: +)
  }
}

extension CacheStatistics: Codable {
  private enum CodingKeys: String, CodingKey {
    case hits, misses, staleServes, negativeHits, fetches, notModified, fetchErrors, storageErrors, lastStorageError, evictions
  }

  private static var counts: [(path: WritableKeyPath<CacheStatistics, Int>, key: CodingKeys)] {
    [
      (\.hits, .hits), (\.misses, .misses), (\.staleServes, .staleServes), (\.negativeHits, .negativeHits), (\.fetches, .fetches),
      (\.notModified, .notModified), (\.fetchErrors, .fetchErrors), (\.storageErrors, .storageErrors),
    ]
  }

  /// Reads statistics that ``encode(to:)`` has written.
  ///
  /// A count that is missing in the encoded statistics becomes 0, and an unknown cause of an eviction is skipped.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    for (path, key) in Self.counts { self[keyPath: path] = try container.decodeIfPresent(Int.self, forKey: key) ?? 0 }
    let evictions = try container.decodeIfPresent([String: Int].self, forKey: .evictions) ?? [:]
    // A newer version of Larder may write further causes of evictions. Unknown causes are skipped, so that the other counts stay readable.
    for (cause, count) in evictions {
      if let cause = EvictionCause(rawValue: cause) { self.evictions[cause] = count }
    }
    lastStorageError = try container.decodeIfPresent(String.self, forKey: .lastStorageError).flatMap(RepositoryError.Code.init(named:))
  }

  /// Writes each count under the name of its property, and the evictions as an object with a count for each cause.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    for (path, key) in Self.counts { try container.encode(self[keyPath: path], forKey: key) }
    try container.encode(evictions, forKey: .evictions)
    try container.encodeIfPresent(lastStorageError?.description, forKey: .lastStorageError)
  }
}
