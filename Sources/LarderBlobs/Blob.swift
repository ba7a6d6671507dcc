public import Foundation

/// Bytes that a blob store returns for a key, with their age and origin.
public struct Blob: Sendable {
  /// Place from which a blob was read: memory or disk.
  public enum Origin: String, Codable, Hashable, Sendable {
    /// The blob was in memory.
    case memory
    /// The blob was read from its file, and the hash of its bytes was compared with the stored hash.
    case disk
  }

  /// Contents of the blob.
  public let data: Data
  /// Time at which the blob was stored, by the wall clock.
  public let storedAt: Date
  /// Place from which the blob was read.
  public let origin: Origin
}

/// Key, size and age of a blob, which are read from the index of the blob store and not from the blob's file.
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

/// The record of a blob in the index of a blob store.
struct BlobEntry: Codable, Identifiable, Sendable {
  /// SHA-256 of the key's UTF-8, which also names the file of the blob.
  let id: String
  let key: String
  let size: Int
  /// SHA-256 of the contents.
  let hash: String
  /// Number of the blob's file name, 0 or 1, since each key has two file names.
  ///
  /// A new blob of the key is written under the other of the two names, and the commit of its entry makes the new file valid. The old file
  /// stays whole until that commit.
  let slot: Int
  let storedAt: Date
  /// Number of the blob's last use, by which the store evicts the blobs that were not used for the longest time.
  ///
  /// A later use has a higher number, also after a restart.
  var used: UInt64

  /// Returns true if another entry of the same key comes from the same write of a blob.
  func isSameBlob(as other: BlobEntry) -> Bool { slot == other.slot && hash == other.hash && storedAt == other.storedAt }

  var info: BlobInfo { BlobInfo(key: key, size: size, storedAt: storedAt) }
}
