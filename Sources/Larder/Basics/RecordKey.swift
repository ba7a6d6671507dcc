internal import Foundation

/// The key of a record, as the text that every backend stores.
///
/// Two keys are equal only if their bytes are equal. Swift compares strings by canonical equivalence, so the composed and the decomposed
/// "café" are equal as `String`. Two different ids must never become one record, so keys are compared, ordered and hashed by their UTF-8
/// bytes. The text of a key may hold any Unicode scalar, NUL included.
///
/// An id may be private, so the description of a key shows only its hash.
public struct RecordKey: Hashable, Comparable, Sendable, CustomStringConvertible {
  private let form: Form

  /// The representation of a key in memory, where each key text has exactly one representation.
  ///
  /// The upper-case text of a UUID is always kept as `uuid` and never as `text`.
  private enum Form: Sendable {
    case text(String)
    /// A UUID is kept in 16 bytes without heap memory, while its text has 36 bytes.
    ///
    /// Most ids are UUIDs, and every record in memory has a key.
    case uuid(UUIDNumber)
  }

  /// Makes a key from its text.
  public init(_ text: String) {
    var text = text
    // Without contiguous UTF-8, each comparison of keys would have to copy the bytes of a bridged `NSString`.
    text.makeContiguousUTF8()
    // Most texts that are not UUIDs do not have the length of a UUID, so the check of the length saves an attempt to parse them.
    let number = text.utf8.count == UUIDNumber.textCount ? text.utf8.withContiguousStorageIfAvailable { UUIDNumber(text: .init($0)) } : nil
    form = if case let number?? = number { .uuid(number) } else { .text(text) }
  }

  /// Makes a key from its text in UTF-8.
  ///
  /// Bytes that are not valid UTF-8 are replaced, as `String(decoding:as:)` does.
  public init(utf8 bytes: UnsafeRawBufferPointer) {
    if let number = UUIDNumber(text: bytes) {
      form = .uuid(number)
    } else {
      form = .text(String(decoding: bytes, as: UTF8.self))
    }
  }

  init(_ number: UUIDNumber) { form = .uuid(number) }

  /// The UUID of the key as a number, or `nil` if the key is not the upper-case text of a UUID.
  var number: UUIDNumber? { if case .uuid(let number) = form { number } else { nil } }

  /// Text of the key.
  ///
  /// Cost: if the key is the upper-case text of a UUID, each read of `text` makes a new string, because the key stores the UUID as a
  /// number.
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

  /// Calls a closure with the UTF-8 bytes of the key.
  public func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    switch form {
    case .text(let text):
      if let result = text.utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return result }
      // The copy of the bytes is never needed: both initialisers make the text contiguous, so `withContiguousStorageIfAvailable` always
      // calls its closure.
      return Array(text.utf8).withUnsafeBytes(body)
    case .uuid(let number): return number.withText(body)
    }
  }

  /// Calls a closure with the bytes of the key, for a caller that still has the bytes from which the key was made.
  ///
  /// For a UUID the closure gets the caller's bytes, so that the text of the UUID need not be made again.
  package func withChecksummedBytes<R>(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> R) -> R {
    // A key that is no UUID may have been made from invalid UTF-8, which was replaced. If invalid UTF-8 was replaced, the bytes of the key
    // differ from `bytes`.
    number == nil ? withBytes(body) : body(bytes)
  }

  /// Hash for logs and errors, which must not show the key: the CRC32C of its bytes as eight hexadecimal digits.
  public var hash: String { withBytes { Hexadecimal.string(CRC32C.checksum($0)) } }

  /// A number sign followed by the hash of the key, so that no log shows the text of the key.
  public var description: String { "#\(hash)" }

  /// Whether both keys have the same bytes.
  public static func == (left: RecordKey, right: RecordKey) -> Bool {
    // Each key text has only one representation, so keys with different representations always have different bytes.
    switch (left.form, right.form) {
    case (.uuid(let left), .uuid(let right)): left == right
    // `==` of `String` would treat two ids that are canonically equivalent as one key.
    case (.text(let left), .text(let right)): left.withBytes { left in right.withBytes { left.elementsEqualBytes($0) } }
    default: false
    }
  }

  /// Compares the bytes of two keys, as SQLite's `BINARY` collation does.
  public static func < (left: RecordKey, right: RecordKey) -> Bool {
    // The numbers of UUIDs have the same order as their texts, so the texts need not be made.
    if case (.uuid(let left), .uuid(let right)) = (left.form, right.form) { return left < right }
    return left.withBytes { left in right.withBytes { left.precedesInBytes($0) } }
  }

  /// Hashes the bytes of the key.
  public func hash(into hasher: inout Hasher) {
    switch form {
    // The hash of `String` is the same for canonically equivalent texts, so the bytes of the text are hashed instead.
    case .text(let text): text.withBytes { hasher.combine(bytes: $0) }
    case .uuid(let number): hasher.combine(number)
    }
  }

  /// Hash for tables in memory, seeded with secrets of the process, so that an attacker cannot choose ids that collide.
  ///
  /// Cost: a few multiplications for a UUID and for a text of at most 16 bytes, otherwise the cost of `Hasher`.
  var tableHash: UInt64 {
    switch form {
    case .uuid(let number): number.tableHash
    case .text(let text): text.withBytes { Self.tableHash(of: $0) }
    }
  }

  /// Returns the ``tableHash`` of a key with the given text, which must not be the upper-case text of a UUID.
  static func tableHash(of text: UnsafeRawBufferPointer) -> UInt64 {
    // `KeyHash` hashes two 64-bit numbers, which hold at most 16 bytes of text.
    guard text.count > 16 else { return KeyHash.of(text) }
    var hasher = Hasher()
    hasher.combine(bytes: text)
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }
}

extension String {
  /// Calls a closure with the UTF-8 bytes of the string.
  fileprivate func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
    if let result = utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return result }
    return Array(utf8).withUnsafeBytes(body)
  }
}

extension UnsafeRawBufferPointer {
  /// Whether two memory regions hold the same bytes.
  func elementsEqualBytes(_ other: UnsafeRawBufferPointer) -> Bool {
    // An empty region may have no base address, and calling `memcmp` with a null pointer is undefined.
    guard count == other.count, let base = baseAddress, let otherBase = other.baseAddress else { return count == other.count }
    return memcmp(base, otherBase, count) == 0
  }

  /// Whether this memory region sorts before the other region when they are compared byte by byte.
  func precedesInBytes(_ other: UnsafeRawBufferPointer) -> Bool {
    guard let base = baseAddress, let otherBase = other.baseAddress else { return count < other.count }
    let order = memcmp(base, otherBase, Swift.min(count, other.count))
    return order == 0 ? count < other.count : order < 0
  }
}

/// A hash of at most 16 bytes for hash tables in memory, seeded with random secrets that every process draws anew.
///
/// The hash is made by two multiplications, whose 128-bit products are each folded to 64 bits by an exclusive or of both halves. The
/// secrets and the hashes never leave the process, so an attacker cannot choose keys whose hashes collide.
enum KeyHash {
  private static let secrets: SIMD4<UInt64> = .random(in: 0 ... .max)

  /// Returns the hash of two numbers that hold the bytes of a text, and of the number of these bytes.
  static func of(_ first: UInt64, _ second: UInt64, count: Int) -> UInt64 {
    // The secrets are copied once, because each access to a global variable checks whether the variable was initialised.
    let secrets = secrets
    let once = folded(first ^ secrets[0], second ^ secrets[1])
    // Without the byte count, a text would have the same hash as the same text with zero bytes before it.
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
    // The low half of a product depends only on the low bits of its factors, so the high half is mixed into the hash, too.
    return product.high ^ product.low
  }
}
