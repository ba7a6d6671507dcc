internal import Foundation

/// The key of a record, as the text that every backend stores.
///
/// Keys are equal only if their bytes are. Swift compares strings by canonical equivalence, so that "café" in its two spellings is one
/// `String`. Two ids must never become one record, so keys compare, order and hash by their UTF-8 bytes. The text may hold any Unicode
/// scalar, NUL included.
///
/// An id may be private, so a key prints as its hash.
public struct RecordKey: Hashable, Comparable, Sendable, CustomStringConvertible {
  private let form: Form

  /// The form in which a key is kept, of which each text has exactly one.
  ///
  /// The upper-case text of a UUID is never kept as text.
  private enum Form: Sendable {
    case text(String)
    /// 36 bytes of text as 16, and none of them on the heap. Most ids are UUIDs, and every record in memory has a key.
    case uuid(UUIDNumber)
  }

  /// Makes a key from its text.
  public init(_ text: String) {
    var text = text
    // A bridged string has no UTF-8 to lend and would be copied at each comparison.
    text.makeContiguousUTF8()
    // Most other texts differ in length and need no further look.
    let number = text.utf8.count == UUIDNumber.textCount ? text.utf8.withContiguousStorageIfAvailable { UUIDNumber(text: .init($0)) } : nil
    form = if case let number?? = number { .uuid(number) } else { .text(text) }
  }

  /// Makes a key from its text in UTF-8.
  ///
  /// Bytes that are not UTF-8 are repaired, as `String(decoding:as:)` does.
  public init(utf8 bytes: UnsafeRawBufferPointer) {
    if let number = UUIDNumber(text: bytes) {
      form = .uuid(number)
    } else {
      form = .text(String(decoding: bytes, as: UTF8.self))
    }
  }

  init(_ number: UUIDNumber) { form = .uuid(number) }

  /// The key as a number, if it is the upper-case text of a UUID.
  var number: UUIDNumber? { if case .uuid(let number) = form { number } else { nil } }

  /// Text of the key.
  ///
  /// Cost: the upper-case text of a UUID is made at each call, because the key keeps a number.
  public var text: String {
    switch form {
    case .text(let text): text
    case .uuid(let number): number.text
    }
  }

  /// Length of the key in bytes of UTF-8.
  public var byteCount: Int {
    switch form {
    case .text(let text): text.utf8.count
    case .uuid: UUIDNumber.textCount
    }
  }

  /// Calls a closure with the bytes of the key.
  public func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    switch form {
    case .text(let text):
      if let result = text.utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return result }
      // Never reached: both initialisers make the text contiguous.
      return Array(text.utf8).withUnsafeBytes(body)
    case .uuid(let number): return number.withText(body)
    }
  }

  /// Calls a closure with the bytes of the key, which was made of the given ones.
  ///
  /// The text of a UUID is lent as given, and not made again.
  package func withChecksummedBytes<R>(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> R) -> R {
    // The text of another key may have been repaired, so that the given bytes differ from its own.
    number == nil ? withBytes(body) : body(bytes)
  }

  /// Hash for logs and errors, which must not name the key: the CRC32C of its bytes as eight hexadecimal digits.
  public var hash: String { withBytes { Hexadecimal.string(CRC32C.checksum($0)) } }

  /// Hash of the key behind a number sign, never its text.
  public var description: String { "#\(hash)" }

  /// Whether the bytes are the same.
  public static func == (left: RecordKey, right: RecordKey) -> Bool {
    // A text has one form only, so keys of different forms are never equal.
    switch (left.form, right.form) {
    case (.uuid(let left), .uuid(let right)): left == right
    // The `==` of strings would make one key of two canonically equivalent ids.
    case (.text(let left), .text(let right)): left.withBytes { left in right.withBytes { left.elementsEqualBytes($0) } }
    default: false
    }
  }

  /// Compares the bytes, as SQLite's `BINARY` collation does.
  public static func < (left: RecordKey, right: RecordKey) -> Bool {
    // The numbers order as the texts do, which then need not be made.
    if case (.uuid(let left), .uuid(let right)) = (left.form, right.form) { return left < right }
    return left.withBytes { left in right.withBytes { left.precedesInBytes($0) } }
  }

  /// Hashes the bytes.
  public func hash(into hasher: inout Hasher) {
    switch form {
    // `String` itself hashes canonically equivalent texts alike.
    case .text(let text): text.withBytes { hasher.combine(bytes: $0) }
    case .uuid(let number): hasher.combine(number)
    }
  }

  /// Hash for tables in memory, for which nobody can craft collisions without the secrets of the process.
  ///
  /// Cost: a few multiplications for the keys of UUIDs and short texts, otherwise that of `Hasher`.
  var tableHash: UInt64 {
    switch form {
    case .uuid(let number): number.tableHash
    case .text(let text): text.withBytes { Self.tableHash(of: $0) }
    }
  }

  /// Returns the ``tableHash`` of a key with this text, which must not be that of a UUID.
  static func tableHash(of text: UnsafeRawBufferPointer) -> UInt64 {
    // `KeyHash` takes two numbers, which hold 16 bytes.
    guard text.count > 16 else { return KeyHash.of(text) }
    var hasher = Hasher()
    hasher.combine(bytes: text)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }
}

extension String {
  /// Calls a closure with the UTF-8 bytes.
  fileprivate func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    if let result = utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return result }
    return Array(utf8).withUnsafeBytes(body)
  }
}

extension UnsafeRawBufferPointer {
  /// Whether both regions hold the same bytes.
  func elementsEqualBytes(_ other: UnsafeRawBufferPointer) -> Bool {
    // An empty region may have no address, which `memcmp` must not get.
    guard count == other.count, let base = baseAddress, let otherBase = other.baseAddress else { return count == other.count }
    return memcmp(base, otherBase, count) == 0
  }

  /// Whether this region comes first in the order of bytes.
  func precedesInBytes(_ other: UnsafeRawBufferPointer) -> Bool {
    guard let base = baseAddress, let otherBase = other.baseAddress else { return count < other.count }
    let order = memcmp(base, otherBase, Swift.min(count, other.count))
    return order == 0 ? count < other.count : order < 0
  }
}

/// A hash of at most 16 bytes for tables in memory, with secrets that every process draws anew.
///
/// It is made by two folded multiplications. The secrets and the hashes never leave the process, so that nobody can choose keys that
/// collide.
enum KeyHash {
  private static let secrets: SIMD4<UInt64> = .random(in: 0 ... .max)

  /// Returns the hash of two numbers and of the number of bytes that they stand for.
  static func of(_ first: UInt64, _ second: UInt64, count: Int) -> UInt64 {
    // Read once, because each access to a global checks whether it was initialised.
    let secrets = secrets
    let once = folded(first ^ secrets[0], second ^ secrets[1])
    // The count tells a text from the same text with zero bytes before it.
    return folded(once ^ secrets[2], secrets[3] ^ UInt64(truncatingIfNeeded: count))
  }

  /// Returns the hash of at most 16 bytes.
  static func of(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var (first, second): (UInt64, UInt64) = (0, 0)
    for byte in bytes.prefix(8) { first = first << 8 | UInt64(byte) }
    for byte in bytes.dropFirst(8) { second = second << 8 | UInt64(byte) }
    return of(first, second, count: bytes.count)
  }

  private static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    // The low half of a product depends on the low bits of its factors alone.
    return product.high ^ product.low
  }
}
