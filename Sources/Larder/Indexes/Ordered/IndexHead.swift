internal import Foundation

/// The first 64 bits of an index value as a number: the lesser of two values never has the greater number.
///
/// Most comparisons of two index entries need only these numbers, called heads, and do not follow a reference to a text elsewhere in
/// memory. Three bits of a head are the kind of the value and 56 bits the beginning of the value. The last five bits say whether the head
/// holds the whole value, and give the length of a short text.
enum IndexHead {
  /// Bit of a head that is set if the head holds only a part of the value.
  private static let isPart: UInt64 = 8

  /// Returns the head of a value in a column, with all bits inverted if the column descends.
  static func of(_ value: IndexValue, isDescending: Bool) -> UInt64 {
    let head = ascending(value)
    return isDescending ? ~head : head
  }

  /// True if all values with this head are equal, because the head holds the whole value.
  ///
  /// In a descending column all bits of the head are inverted, including the bit ``isPart`` that this function reads.
  static func isExact(_ head: UInt64, isDescending: Bool) -> Bool { (head & isPart == 0) != isDescending }

  private static func ascending(_ value: IndexValue) -> UInt64 {
    switch value.form {
    case .null: 0
    case .bool(let value): head(1, value ? 1 : 0)
    case .integer(let value): integer(value)
    case .large(let value): head(3, value >> 8) | (value & 0xFF == 0 ? 0 : isPart)
    case .real(let value): real(value)
    case .text(let value): text(value)
    case .identifier(let high, _): head(6, high >> 8) | isPart
    case .notANumber: head(7, 0)
    }
  }

  private static func head(_ kind: UInt64, _ beginning: UInt64) -> UInt64 { kind << 61 | beginning << 5 }

  private static func integer(_ value: Int64) -> UInt64 {
    // 56 bits hold the integers from -2⁵⁵ + 1 to 2⁵⁵ - 2 exactly, shifted to be positive. All greater integers share one head with
    // `isPart` set, and all smaller integers share another.
    let limit: Int64 = 1 << 55
    if value >= limit - 1 { return head(2, 1 << 56 - 1) | isPart }  // UInt64
    if value <= -limit { return head(2, 0) | isPart }
    return head(2, UInt64(value + limit))
  }

  private static func real(_ value: Double) -> UInt64 {
    // The head holds the first 56 bits of a floating-point number. The function `rest` returns the last 8 bits of the number.
    let bits = ascendingBits(value)
    return head(4, bits >> 8) | (bits & 0xFF == 0 ? 0 : isPart)
  }

  /// Returns the bits of a floating-point number as an integer, changed so that greater numbers give greater integers.
  ///
  /// The bit patterns of IEEE 754 ascend for positive numbers and descend for negative numbers, so `ascendingBits` inverts the bits of
  /// negative numbers and sets the sign bit of positive numbers.
  static func ascendingBits(_ value: Double) -> UInt64 {
    let bits = value.bitPattern
    return bits >> 63 == 0 ? bits | 1 << 63 : ~bits  // UInt64
  }

  /// Returns the head of a text: the first seven bytes of its composed form, and its length in bytes if it has at most seven.
  private static func text(_ value: String) -> UInt64 {
    let (beginning, count) = bytes(of: value, from: 0, count: 7)
    return head(5, beginning) | (count > 7 ? isPart : UInt64(count))
  }

  /// Returns the value that a head and a rest determine, where `isDescending` is the direction of the value's column.
  ///
  /// For a head that is not exact, `rest` must be the number that ``rest(of:isDescending:)`` returned.
  static func value(_ head: UInt64, _ rest: UInt64, isDescending: Bool) -> IndexValue {
    let isExact = isExact(head, isDescending: isDescending)
    let (head, rest) = isDescending ? (~head, ~rest) : (head, rest)
    let beginning: UInt64 = head >> 5 & (1 << 56 - 1)
    return switch head >> 61 {
    case 1: IndexValue(beginning == 1)
    case 2 where isExact: IndexValue(Int64(beginning) - 1 << 55)
    case 2: IndexValue(Int64(bitPattern: rest ^ 1 << 63))
    case 3: IndexValue(beginning << 8 | (isExact ? 0 : rest))
    case 4: IndexValue(number(ascendingBits: beginning << 8 | (isExact ? 0 : rest)))
    // The low three bits of the head are the length of the text, which has at most seven bytes. `IndexEntry` stores longer texts as
    // strings.
    case 5: IndexValue(text(beginning, count: Int(head & 7)))
    // Identifiers (kind 6) never reach the function `value`. The head and the rest hold only 120 of the 128 bits of an identifier (a UUID),
    // so `IndexEntry` stores identifiers in its array.
    case 7: .notANumber
    default: .null
    }
  }

  private static func text(_ beginning: UInt64, count: Int) -> String {
    withUnsafeBytes(of: (beginning << 8).bigEndian) { String(decoding: $0.prefix(count), as: UTF8.self) }
  }

  /// Returns the floating-point number for an integer that ``ascendingBits(_:)`` returned.
  static func number(ascendingBits bits: UInt64) -> Double { Double(bitPattern: bits >> 63 == 1 ? bits ^ 1 << 63 : ~bits) }

  /// Returns the bits of a value after its head, as a number, and true if the head and the number determine the value.
  static func rest(of value: IndexValue, isDescending: Bool) -> (number: UInt64, isAll: Bool) {
    let (number, isAll) = rest(of: value)
    return (isDescending ? ~number : number, isAll)
  }

  private static func rest(of value: IndexValue) -> (number: UInt64, isAll: Bool) {
    switch value.form {
    case .integer(let value): (UInt64(bitPattern: value) ^ 1 << 63, true)
    case .large(let value): (value & 0xFF, true)
    case .real(let value): (ascendingBits(value) & 0xFF, true)
    // The head and the rest hold the first 15 bytes of a text. The text may be longer, so `isAll` is never true for a text.
    case .text(let value): (bytes(of: value, from: 7, count: 8).number, false)
    case .identifier(let high, let low): (high << 56 | low >> 8, false)
    case .null, .bool, .notANumber: (0, true)
    }
  }

  /// Returns some bytes of a text in Unicode's composed form, padded with zeros, and the length of the text in that form.
  ///
  /// U+0300 is the first combining scalar. The requested bytes of a text are already in composed form if no scalar from U+0300 on begins in
  /// them or directly after them. Scalars below U+0300 take one or two bytes, and their first byte is less than the first byte of U+0300.
  private static func bytes(of text: String, from start: Int, count: Int) -> (number: UInt64, length: Int) {
    // Two more bytes are tested, because a combining scalar directly after the requested bytes may change the last scalar in them.
    var text = composed(text, first: start + count + 2)
    return text.withUTF8 { bytes in
      var number: UInt64 = 0
      for position in start..<start + count { number = number << 8 | (position < bytes.count ? UInt64(bytes[position]) : 0) }
      return (number, bytes.count)
    }
  }

  /// Returns true if the left text comes first, by the bytes of their composed forms.
  ///
  /// Swift's `<` is no order for texts in several forms: "e\u{301}" equals "é", and comes behind "éa", which comes behind "é".
  static func precedes(_ left: String, _ right: String) -> Bool {
    var (left, right) = (left, right)
    let isBefore: Bool? = left.withUTF8 { left in
      right.withUTF8 { right in
        isComposed(left[...]) && isComposed(right[...]) ? precedes(left, right) : nil
      }
    }
    if let isBefore { return isBefore }
    (left, right) = (composed(left), composed(right))
    return left.withUTF8 { left in right.withUTF8 { right in precedes(left, right) } }
  }

  private static func precedes(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let first = left.baseAddress, let second = right.baseAddress else { return left.count < right.count }
    let order = memcmp(first, second, min(left.count, right.count))
    return order == 0 ? left.count < right.count : order < 0
  }

  /// Returns a text in Unicode's composed form, or unchanged if its first `count` bytes are in that form already.
  static func composed(_ text: String, first count: Int = .max) -> String {
    var text = text
    let isPlain = text.withUTF8 { isComposed($0.prefix(count)) }
    return isPlain ? text : text.precomposedStringWithCanonicalMapping
  }

  /// Returns true if bytes are surely in composed form.
  ///
  /// 0xCC is the first byte of U+0300. The Chinese characters from U+4000 to U+9FFF begin with a byte from 0xE4 to 0xE9, and compose with
  /// nothing.
  private static func isComposed(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    // The compiler makes vector instructions of a maximum, and not of a search.
    var greatest: UInt8 = 0
    for byte in bytes { greatest = max(greatest, byte) }
    return greatest < 0xCC || bytes.allSatisfy { $0 < 0xCC || 0xE4...0xE9 ~= $0 }
  }
}

/// Three numbers that decide the order of most entries of an ordered index, without reading the entries' values or record keys.
///
/// The first number is the head of the first value. The second number is the rest of the first value if its head does not hold the whole
/// value, and the head of the second value, if any, otherwise. The third number is the beginning of the record key. The third number is 0
/// if the first two numbers do not determine all values, because the key decides only between entries with equal values.
struct IndexDigest: Comparable, Sendable {
  var first: UInt64 = 0
  var second: UInt64 = 0
  var key: UInt64 = 0

  static func < (left: Self, right: Self) -> Bool {
    if left.first != right.first { return left.first < right.first }
    if left.second != right.second { return left.second < right.second }
    return left.key < right.key
  }
}

extension KeyOrder {
  /// Returns the beginning of a record key as a number: of two keys, the earlier key never has the greater number.
  func head(of key: RecordKey) -> UInt64 {
    key.withBytes { bytes in
      // Keys of integer ids sort by their number of digits first. All other keys sort by their bytes.
      guard case .numbers = self else { return Self.beginning(bytes[...], count: 8) }
      // Of two positive integers the one with more digits is greater. Of two negative integers the one with more digits is less, so `head`
      // inverts all bits of a negative integer's number.
      let isNegative = bytes.first == 0x2D
      let digits = bytes.dropFirst(isNegative ? 1 : 0)
      // Seven bits hold the number of digits. All integers of one sign with 127 or more digits get the same number, so that the comparison
      // of their keys decides.
      let size = 1 << 63 | UInt64(Swift.min(digits.count, 127)) << 56
      let head = digits.count >= 127 ? size : size | Self.beginning(digits, count: 7)
      return isNegative ? ~head : head
    }
  }

  private static func beginning(_ bytes: Slice<UnsafeRawBufferPointer>, count: Int) -> UInt64 {
    var number: UInt64 = 0
    for offset in 0..<count { number = number << 8 | (offset < bytes.count ? UInt64(bytes[bytes.startIndex + offset]) : 0) }
    return number
  }

  /// Returns records in the order of their ids.
  ///
  /// The records are sorted by ``head(of:)``, because numbers compare much faster than keys. Two keys are compared only if their heads are
  /// equal.
  func sorted(_ slots: [RecordSlot]) -> [RecordSlot] {
    var heads: [(head: UInt64, position: Int)] = []
    heads.reserveCapacity(slots.count)
    for (position, slot) in slots.enumerated() { heads.append((head(of: slot.key), position)) }
    heads.sort { left, right in
      left.head == right.head ? isBefore(slots[left.position].key, slots[right.position].key) : left.head < right.head
    }
    return heads.map { slots[$0.position] }
  }
}
