public import Foundation

/// Bytes that a blob store returns for a key.
public struct Blob: Sendable {
  /// Place from which a blob was read: memory or disk.
  public enum Origin: String, Codable, Hashable, Sendable {
    /// The blob was in memory.
    case memory
    /// The blob was read from its file, and its hash was compared.
    case disk
  }

  /// Contents of the blob.
  public let data: Data
  /// Time at which the blob was stored, by the wall clock.
  public let storedAt: Date
  /// Place from which the blob was read.
  public let origin: Origin
}

/// Key, size and age of a blob, which need no read of its file.
public struct BlobInfo: Hashable, Sendable {
  /// Key of the blob.
  ///
  /// Keys with different bytes are different keys, even if they are equal as Swift strings.
  public let key: String
  /// Size of the blob in bytes.
  public let size: Int
  /// Time at which the blob was stored, by the wall clock.
  public let storedAt: Date
}

/// Entry of a blob in the index of a blob store.
struct BlobEntry: Codable, Identifiable, Sendable {
  /// SHA-256 of the key's UTF-8.
  let id: String
  let key: String
  let size: Int
  /// SHA-256 of the contents.
  let hash: String
  /// Which of the key's two file names the blob has, 0 or 1.
  ///
  /// A new blob is written under the other name, and the commit of its entry makes it valid. So the old file stays whole until then.
  let slot: Int
  let storedAt: Date
  /// Number of the blob's last use.
  ///
  /// The store numbers uses upward.
  var used: UInt64

  /// Returns true if another entry of the same key comes from the same write.
  func isSameBlob(as other: BlobEntry) -> Bool { slot == other.slot && hash == other.hash && storedAt == other.storedAt }

  var info: BlobInfo { BlobInfo(key: key, size: size, storedAt: storedAt) }
}
