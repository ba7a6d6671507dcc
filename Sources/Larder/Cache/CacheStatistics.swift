/// What a cache has done since it was made.
public struct CacheStatistics: Hashable, Sendable {
  /// Why an entry was removed.
  public enum EvictionCause: String, Hashable, Sendable, Codable, CaseIterable {
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
  /// How often the source was asked, retries included.
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
}
