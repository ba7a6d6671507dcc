public import Foundation

/// The bytes that are kept for a key.
public struct Blob: Sendable {
  /// Where a blob was found.
  public enum Origin: String, Codable, Hashable, Sendable {
    /// It was in memory.
    case memory
    /// It was read from its file, and its hash compared.
    case disk
  }

  /// The bytes.
  public let data: Data
  /// When they were stored, by the wall clock.
  public let storedAt: Date
  /// Where they were found.
  public let origin: Origin
}

/// What is known of a blob without reading it.
public struct BlobInfo: Hashable, Sendable {
  /// Its key; another one with other bytes is another key, also where Swift takes the strings for equal.
  public let key: String
  /// Its size in bytes.
  public let size: Int
  /// When it was stored, by the wall clock.
  public let storedAt: Date
}

/// What the index holds of a blob.
struct BlobEntry: Codable, Identifiable, Sendable {
  /// The SHA-256 of the key's UTF-8.
  let id: String
  let key: String
  let size: Int
  /// The SHA-256 of the contents.
  let hash: String
  /// Which of its two file names the blob has: a new one is written beside the old one, and takes its place when the index says so.
  let slot: Int
  let storedAt: Date
  /// The number of its last use.
  var used: UInt64

  var info: BlobInfo { BlobInfo(key: key, size: size, storedAt: storedAt) }
}
