package import Foundation

/// The bytes of an index entry in the storage, whose order is the order of the entries.
///
/// A key has the values of all columns and then the record's key. Each value is self-delimiting, so the bytes of the first values are a
/// prefix of the keys of exactly the entries with these values. In a descending column all bytes of a value are inverted.
enum IndexKey {
  /// Largest size of a key in the storage, in bytes.
  ///
  /// A longer text makes the whole index unfit for the storage. Without a limit, one block of keys could be as large as all values.
  static let limit = 2_048

  /// Version of the form of the bytes, which is a part of the name of each stored index.
  static let version = 1

  /// Returns the key of an entry.
  static func bytes(of entry: IndexEntry) -> Data {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(usualCount)
    append(entry, to: &bytes)
    return Data(bytes)
  }

  /// Returns true if some bytes are the key of an entry.
  ///
  /// - Parameter written: Memory for the key, so that a caller that compares many keys allocates it once.
  static func isKey(_ bytes: Data, of entry: IndexEntry, _ written: inout [UInt8]) -> Bool {
    written.removeAll(keepingCapacity: true)
    append(entry, to: &written)
    return bytes.withUnsafeBytes { bytes in written.withUnsafeBytes { $0.elementsEqualBytes(bytes) } }
  }

  /// Returns true if the key of an entry is not longer than ``limit``.
  static func fits(_ entry: IndexEntry) -> Bool {
    // In composed form a text has at most three times as many bytes, and each zero takes two, so most keys need not be made.
    var bound = entry.slot.key.byteCount + 5
    for column in 0..<entry.columnCount {
      if case .text(let text) = entry.value(column).form { bound += 6 * text.utf8.count + 3 } else { bound += 17 }
    }
    return bound <= limit || bytes(of: entry).count <= limit
  }

  /// Number of bytes that are reserved for a key, so that most keys are written without a second allocation.
  private static let usualCount = 96

  /// Appends the key of an entry to bytes.
  static func append(_ entry: IndexEntry, to bytes: inout [UInt8]) {
    let order = entry.order
    for column in 0..<entry.columnCount { append(entry.value(column), isDescending: order.isDescending(column), to: &bytes) }
    append(entry.slot.key, order.keys, to: &bytes)
  }

  /// Returns the bytes with which the keys of all entries begin that have these values in their first columns.
  ///
  /// - Parameter key: Key of a record for the position of one entry, or `nil`.
  static func bytes(_ values: [IndexValue], _ order: IndexEntry.Order, key: RecordKey? = nil) -> Data {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(usualCount)
    for (column, value) in values.enumerated() { append(value, isDescending: order.isDescending(column), to: &bytes) }
    if let key { append(key, order.keys, to: &bytes) }
    return Data(bytes)
  }

  /// Returns the least bytes behind all keys that begin with some bytes, or `nil` if there are none.
  static func end(ofPrefix prefix: Data) -> Data? {
    guard let last = prefix.lastIndex(where: { $0 != .max }) else { return nil }
    var end = prefix[...last]
    end[last] += 1
    return end
  }

  private static func append(_ value: IndexValue, isDescending: Bool, to bytes: inout [UInt8]) {
    let start = bytes.count
    append(value, to: &bytes)
    if isDescending { invert(&bytes, from: start) }
  }

  private static func invert(_ bytes: inout [UInt8], from start: Int) {
    for position in start..<bytes.count { bytes[position] = ~bytes[position] }
  }

  // MARK: Values

  /// The first byte of a value, in the order of ``IndexValue``.
  private enum Kind: UInt8 {
    case null = 1
    case bool, integer, large, real, text, identifier, notANumber
  }

  private static func append(_ value: IndexValue, to bytes: inout [UInt8]) {
    switch value.form {
    case .null: bytes.append(Kind.null.rawValue)
    case .bool(let value):
      bytes.append(Kind.bool.rawValue)
      bytes.append(value ? 1 : 0)
    case .integer(let value): append(.integer, UInt64(bitPattern: value) ^ 1 << 63, to: &bytes)
    case .large(let value): append(.large, value, to: &bytes)
    case .real(let value): append(.real, IndexHead.ascendingBits(value), to: &bytes)
    case .text(let value):
      bytes.append(Kind.text.rawValue)
      append(value, to: &bytes)
    case .identifier(let high, let low):
      append(.identifier, high, to: &bytes)
      append(low, to: &bytes)
    case .notANumber: bytes.append(Kind.notANumber.rawValue)
    }
  }

  private static func append(_ kind: Kind, _ number: UInt64, to bytes: inout [UInt8]) {
    bytes.append(kind.rawValue)
    append(number, to: &bytes)
  }

  private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }

  /// Appends a text in Unicode's composed form, in which equal texts have equal bytes.
  private static func append(_ text: String, to bytes: inout [UInt8]) {
    var composed = IndexHead.composed(text)
    composed.withUTF8 { utf8 in
      // Texts seldom have the byte 0, so the bytes are mostly appended at once.
      guard utf8.contains(0) else { return bytes.append(contentsOf: utf8) }
      for byte in utf8 {
        bytes.append(byte)
        if byte == 0 { bytes.append(escape) }
      }
    }
    bytes.append(contentsOf: [0, end])
  }

  /// The byte after a zero in a text, and the byte after the zero that ends a text.
  ///
  /// The end is less than the escape, so that a text comes before all longer texts that begin with it.
  private static let (escape, end): (UInt8, UInt8) = (0xFF, 1)

  private static func append(_ key: RecordKey, _ order: KeyOrder, to bytes: inout [UInt8]) {
    guard case .numbers = order else { return key.withBytes { bytes.append(contentsOf: $0) } }
    // Of two integers of one sign, the one with more digits has the larger magnitude.
    key.withBytes { text in
      let isNegative = text.first == 0x2D
      let start = bytes.count + 1
      bytes.append(isNegative ? 1 : 2)
      withUnsafeBytes(of: UInt32(clamping: text.count).bigEndian) { bytes.append(contentsOf: $0) }
      bytes.append(contentsOf: text)
      if isNegative { invert(&bytes, from: start) }
    }
  }
}

// MARK: - Reading

extension IndexKey {
  /// Returns the entry of a key that ``bytes(of:)`` has made, or `nil` for other bytes.
  ///
  /// The record of the entry is a stub of no known revision.
  static func entry(_ bytes: Data, columns: Int, _ order: IndexEntry.Order) -> IndexEntry? {
    var values: [IndexValue] = []
    return entry(bytes, columns: columns, order, &values)
  }

  /// Returns the entry of a key as ``entry(_:columns:_:)`` does.
  ///
  /// - Parameter values: Memory for the values, so that a caller that reads many keys allocates it once.
  static func entry(_ bytes: Data, columns: Int, _ order: IndexEntry.Order, _ values: inout [IndexValue]) -> IndexEntry? {
    values.removeAll(keepingCapacity: true)
    return bytes.withUnsafeBytes { bytes in
      var reader = Reader(bytes: bytes)
      for column in 0..<columns {
        guard let value = reader.value(isDescending: order.isDescending(column)) else { return nil }
        values.append(value)
      }
      guard let key = reader.key(order.keys) else { return nil }
      return IndexEntry(values: values, slot: RecordSlot(stubOf: key), order: order)
    }
  }

  private struct Reader {
    let bytes: UnsafeRawBufferPointer
    var position = 0

    mutating func value(isDescending: Bool) -> IndexValue? {
      let mask: UInt8 = isDescending ? 0xFF : 0
      guard let kind = byte().flatMap({ Kind(rawValue: $0 ^ mask) }) else { return nil }
      switch kind {
      case .null: return .null
      case .notANumber: return .notANumber
      case .bool: return byte().map { IndexValue($0 ^ mask != 0) }
      case .integer: return number(mask).map { IndexValue(Int64(bitPattern: $0 ^ 1 << 63)) }
      case .large: return number(mask).map { IndexValue($0) }
      case .real: return number(mask).map { IndexValue(IndexHead.number(ascendingBits: $0)) }
      case .text: return text(mask)
      case .identifier:
        guard let high = number(mask), let low = number(mask) else { return nil }
        return IndexValue(.identifier(high, low))
      }
    }

    private mutating func byte() -> UInt8? {
      guard position < bytes.count else { return nil }
      defer { position += 1 }
      return bytes[position]
    }

    private mutating func number(_ mask: UInt8) -> UInt64? {
      guard bytes.count - position >= 8 else { return nil }
      defer { position += 8 }
      let number = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
      return mask == 0 ? number : ~number
    }

    private mutating func text(_ mask: UInt8) -> IndexValue? {
      // Texts seldom have the byte 0, so the first zero is mostly that of the end, and the bytes before it are read at once.
      if let zero = bytes[position...].firstIndex(of: mask), zero + 1 < bytes.count, bytes[zero + 1] ^ mask == end {
        let text = UnsafeRawBufferPointer(rebasing: bytes[position..<zero])
        position = zero + 2
        let read = mask == 0 ? String(validating: text, as: UTF8.self) : String(validating: text.lazy.map { $0 ^ mask }, as: UTF8.self)
        return read.map { IndexValue($0) }
      }
      var text: [UInt8] = []
      while let next = byte() {
        guard next ^ mask == 0 else {
          text.append(next ^ mask)
          continue
        }
        switch byte().map({ $0 ^ mask }) {
        case escape: text.append(0)
        case end: return String(validating: text, as: UTF8.self).map { IndexValue($0) }
        default: return nil
        }
      }
      return nil
    }

    mutating func key(_ order: KeyOrder) -> RecordKey? {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
      guard case .numbers = order else {
        // Most ids are UUIDs, which need no text.
        if let number = UUIDNumber(text: rest) { return RecordKey(number) }
        return String(validating: rest, as: UTF8.self).map { RecordKey($0) }
      }
      guard rest.count >= 5, rest[0] == 1 || rest[0] == 2 else { return nil }
      let mask: UInt8 = rest[0] == 1 ? 0xFF : 0
      return String(validating: rest[5...].lazy.map { $0 ^ mask }, as: UTF8.self).map { RecordKey($0) }
    }
  }
}

extension Data {
  /// Returns true if these bytes come before other bytes, as unsigned numbers.
  package func precedes(_ other: Data) -> Bool { withUnsafeBytes { left in other.withUnsafeBytes { left[...].precedes($0[...]) } } }
}

extension Slice<UnsafeRawBufferPointer> {
  /// Returns true if these bytes come before other bytes, as unsigned numbers.
  func precedes(_ other: Self) -> Bool {
    let (left, right) = (UnsafeRawBufferPointer(rebasing: self), UnsafeRawBufferPointer(rebasing: other))
    let count = Swift.min(left.count, right.count)
    guard count > 0, let first = left.baseAddress, let second = right.baseAddress else { return left.count < right.count }
    let order = memcmp(first, second, count)
    return order == 0 ? left.count < right.count : order < 0
  }
}
