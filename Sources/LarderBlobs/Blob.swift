public import Foundation

/// The bytes that are kept for a key.
public struct Blob: Sendable {
  /// The place in which a blob was found.
  public enum Origin: String, Codable, Hashable, Sendable {
    /// It was in memory.
    case memory
    /// It was read from its file, and its hash compared.
    case disk
  }

  /// The bytes.
  public let data: Data
  /// The moment at which the bytes were stored, by the wall clock.
  public let storedAt: Date
  /// The place in which they were found.
  public let origin: Origin
}

/// The key, size and age of a blob, which are known without reading it.
public struct BlobInfo: Hashable, Sendable {
  /// Its key; another one with other bytes is another key, also where Swift takes the strings for equal.
  public let key: String
  /// Its size in bytes.
  public let size: Int
  /// The moment at which it was stored, by the wall clock.
  public let storedAt: Date
}

/// The entry of a blob in the index.
struct BlobEntry: Codable, Identifiable, Sendable {
  /// The SHA-256 of the key's UTF-8.
  let id: String
  let key: String
  let size: Int
  /// The SHA-256 of the contents.
  let hash: String
  /// The number of the file name that the blob has, of two: a new blob is written under the other one, and is valid when the index says so.
  let slot: Int
  let storedAt: Date
  /// The number of its last use.
  var used: UInt64

  /// Whether an entry of the same key is of the same write.
  func isSameBlob(as other: BlobEntry) -> Bool { slot == other.slot && hash == other.hash && storedAt == other.storedAt }

  var info: BlobInfo { BlobInfo(key: key, size: size, storedAt: storedAt) }
}
