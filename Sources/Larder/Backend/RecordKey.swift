internal import Foundation

/// The key of a record, as the text that every backend stores; equal only if the bytes are equal.
///
/// Swift compares strings by canonical equivalence, so that "café" in its two spellings is one `String`. Two ids must never become one
/// record, so keys compare, order and hash by their UTF-8 bytes. The text may hold any Unicode scalar, NUL included.
///
/// An id may be private, so a key prints as its hash.
public struct RecordKey: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The key text.
  public let text: String

  /// Makes a key of its text.
  public init(_ text: String) {
    var text = text
    text.makeContiguousUTF8()
    self.text = text
  }

  /// The length in bytes of UTF-8.
  public var byteCount: Int { text.utf8.count }

  /// Lends the bytes of the key.
  public func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    if let result = text.utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return result }
    return Array(text.utf8).withUnsafeBytes(body)
  }

  /// A hash for logs and errors, which must not name the key itself: the CRC32C of its bytes, as eight hexadecimal digits.
  public var hash: String { withBytes { Hexadecimal.string(CRC32C.checksum($0)) } }

  /// The hash behind a number sign, never the text.
  public var description: String { "#\(hash)" }

  /// Whether the bytes are the same.
  public static func == (left: RecordKey, right: RecordKey) -> Bool {
    left.withBytes { left in right.withBytes { right in left.elementsEqualBytes(right) } }
  }

  /// Compares the bytes, as SQLite's `BINARY` collation does.
  public static func < (left: RecordKey, right: RecordKey) -> Bool {
    left.withBytes { left in right.withBytes { right in left.lexicographicallyPrecedes(right) } }
  }

  /// Hashes the bytes.
  public func hash(into hasher: inout Hasher) {
    withBytes { hasher.combine(bytes: $0) }
  }
}

extension UnsafeRawBufferPointer {
  /// Whether both regions hold the same bytes.
  func elementsEqualBytes(_ other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count, let base = baseAddress, let otherBase = other.baseAddress else { return count == other.count }
    return memcmp(base, otherBase, count) == 0
  }
}
