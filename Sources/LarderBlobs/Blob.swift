public import Foundation

/// Bytes that a blob store returns for a key, with their age and origin.
public struct Blob: Sendable {
  /// Source from which a blob was read: memory or disk.
  public enum Origin: String, Codable, Hashable, Sendable {
    /// The blob was read from memory.
    case memory
    /// The blob was read from its file, and the hash of its bytes was compared with the stored hash.
    case disk
  }

  /// Contents of the blob.
  public let data: Data
  /// Time at which the blob was stored, by the wall clock.
  public let storedAt: Date
  /// Source from which the blob was read: memory or disk.
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
  /// Number of the blob's file name, 0 or 1, because each key has two possible file names.
  ///
  /// A new blob of a key is written under the file name that the key's current blob does not use. The old file stays whole until the commit
  /// of the index entry that makes the new file valid.
  let slot: Int
  let storedAt: Date
  /// Number of the blob's last use, by which the store evicts the blobs that were not used for the longest time.
  ///
  /// A later use of any blob has a higher number, even after a restart of the app.
  var used: UInt64

  /// Returns true if another index entry of the same key was made by the same write of the blob.
  func isSameBlob(as other: BlobEntry) -> Bool { slot == other.slot && hash == other.hash && storedAt == other.storedAt }

  var info: BlobInfo { BlobInfo(key: key, size: size, storedAt: storedAt) }
}
