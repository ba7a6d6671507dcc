/// What a cache has done since it was made.
public struct CacheStatistics: Hashable, Sendable {
  /// Why an entry was removed.
  public enum EvictionCause: String, Hashable, Sendable, Codable, CaseIterable, CodingKeyRepresentable {
    /// There were too many.
    case count
    /// They were too large together, or one was by itself.
    case bytes
    /// It was expired, and room was wanted.
    case expired
    /// The system asked for memory.
    case memoryPressure
  }

  /// Answers from storage with a fresh value.
  public internal(set) var hits = 0
  /// Calls that found nothing usable in storage.
  public internal(set) var misses = 0
  /// Answers from storage with a stale value.
  public internal(set) var staleServes = 0
  /// Calls that were answered "there is none" without asking the source.
  public internal(set) var negativeHits = 0
  /// How often the source was asked for a key, retries included.
  public internal(set) var fetches = 0
  /// How often the source answered "not modified".
  public internal(set) var notModified = 0
  /// How often asking the source has failed, retries included; cancelled requests are not counted.
  public internal(set) var fetchErrors = 0
  /// How often reading or writing the storage has failed; none of these has failed a fetch.
  public internal(set) var storageErrors = 0
  /// The newest failure of the storage.
  public internal(set) var lastStorageError: RepositoryError.Code?
  /// How many entries were removed, by cause; calls that remove are not counted.
  public internal(set) var evictions: [EvictionCause: Int] = [:]

  /// Starts with zeros.
  public init() {}

  /// Adds what another cache, or an earlier run, has counted; the newer ``lastStorageError`` is taken to be the second's.
  public static func + (first: CacheStatistics, second: CacheStatistics) -> CacheStatistics {
    var sum = first
    sum += second
    return sum
  }

  /// Adds what another cache, or an earlier run, has counted; see ``+(_:_:)``.
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

  /// Reads what ``encode(to:)`` has written; a count that is not there is 0, and a cause that is not known is left out.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    for (path, key) in Self.counts { self[keyPath: path] = try container.decodeIfPresent(Int.self, forKey: key) ?? 0 }
    let evictions = try container.decodeIfPresent([String: Int].self, forKey: .evictions) ?? [:]
    for (cause, count) in evictions {
      if let cause = EvictionCause(rawValue: cause) { self.evictions[cause] = count }
    }
    lastStorageError = try container.decodeIfPresent(String.self, forKey: .lastStorageError).flatMap(RepositoryError.Code.init(named:))
  }

  /// Writes the counts under the names of their properties; evictions as an object by cause.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    for (path, key) in Self.counts { try container.encode(self[keyPath: path], forKey: key) }
    try container.encode(evictions, forKey: .evictions)
    try container.encodeIfPresent(lastStorageError?.description, forKey: .lastStorageError)
  }
}
