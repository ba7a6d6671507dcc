internal import Foundation

/// The first 64 bits of an index value, as a number that never descends where the values ascend.
///
/// Most comparisons end with it and read no text elsewhere in memory. Three bits are the kind of the value and 56 its beginning. The last
/// five say whether that is the whole value, and give the length of a short text.
enum IndexHead {
  /// Bit that is set if the value has more than its head.
  private static let isPart: UInt64 = 8

  /// Returns the head of a value in a column, with all bits inverted if the column descends.
  static func of(_ value: IndexValue, isDescending: Bool) -> UInt64 {
    let head = ascending(value)
    return isDescending ? ~head : head
  }

  /// True if all values with this head are equal.
  ///
  /// A descending column inverts every bit of the head, including the one that says so.
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
    // 56 bits hold integers of this range exactly, shifted to be positive. Larger ones share the head at either end.
    let limit: Int64 = 1 << 55
    if value >= limit - 1 { return head(2, 1 << 56 - 1) | isPart }  // UInt64
    if value <= -limit { return head(2, 0) | isPart }
    return head(2, UInt64(value + limit))
  }

  private static func real(_ value: Double) -> UInt64 {
    // The head holds 56 bits of a number. The last 8 are its rest.
    let bits = ascendingBits(value)
    return head(4, bits >> 8) | (bits & 0xFF == 0 ? 0 : isPart)
  }

  /// Returns the bits of a number, changed so that they ascend with the numbers.
  ///
  /// The bit patterns of IEEE 754 ascend for positive numbers and descend for negative ones, so those are inverted.
  private static func ascendingBits(_ value: Double) -> UInt64 {
    let bits = value.bitPattern
    return bits >> 63 == 0 ? bits | 1 << 63 : ~bits  // UInt64
  }

  /// Returns the first seven bytes of a text in its comparable form, and their number if that is the whole text.
  private static func text(_ value: String) -> UInt64 {
    let (beginning, count) = bytes(of: value, from: 0, count: 7)
    return head(5, beginning) | (count > 7 ? isPart : UInt64(count))
  }

  /// Returns the value that a head stands for in a column, which may descend.
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
    // The low three bits of a text's head are its length, if it is not longer than seven bytes.
    case 5: IndexValue(text(beginning, count: Int(head & 7)))
    // Identifiers (kind 6) never get here: their heads are not exact, and their rest is not all of the value.
    case 7: .notANumber
    default: .null
    }
  }

  private static func text(_ beginning: UInt64, count: Int) -> String {
    withUnsafeBytes(of: (beginning << 8).bigEndian) { String(decoding: $0.prefix(count), as: UTF8.self) }
  }

  /// Returns the number for bits of ``ascendingBits(_:)``.
  private static func number(ascendingBits bits: UInt64) -> Double { Double(bitPattern: bits >> 63 == 1 ? bits ^ 1 << 63 : ~bits) }

  /// Returns the bits after the head of a value as a number that ascends with the values, and true if they complete the value.
  static func rest(of value: IndexValue, isDescending: Bool) -> (number: UInt64, isAll: Bool) {
    let (number, isAll) = rest(of: value)
    return (isDescending ? ~number : number, isAll)
  }

  private static func rest(of value: IndexValue) -> (number: UInt64, isAll: Bool) {
    switch value.form {
    case .integer(let value): (UInt64(bitPattern: value) ^ 1 << 63, true)
    case .large(let value): (value & 0xFF, true)
    case .real(let value): (ascendingBits(value) & 0xFF, true)
    // Never complete: a text may go on behind its fifteenth byte.
    case .text(let value): (bytes(of: value, from: 7, count: 8).number, false)
    case .identifier(let high, let low): (high << 56 | low >> 8, false)
    case .null, .bool, .notANumber: (0, true)
    }
  }

  /// Returns some bytes of a text in Unicode's composed form, padded with zeros, and the length of the text in that form.
  ///
  /// A text already has that form if it has no scalar from U+0300 on, the first that combines, in these bytes or directly behind them,
  /// where it could change the scalar before. Other scalars take one or two bytes, and their first byte is below that of U+0300.
  private static func bytes(of text: String, from start: Int, count: Int) -> (number: UInt64, length: Int) {
    var text = text
    // 0xCC is the first byte of U+0300. Two bytes more, because a combining scalar right behind the cut counts, too.
    let isPlain = text.withUTF8 { bytes in bytes.prefix(start + count + 2).allSatisfy { $0 < 0xCC } }
    if !isPlain { text = text.precomposedStringWithCanonicalMapping }
    return text.withUTF8 { bytes in
      var number: UInt64 = 0
      for position in start..<start + count { number = number << 8 | (position < bytes.count ? UInt64(bytes[position]) : 0) }
      return (number, bytes.count)
    }
  }
}

/// The numbers that decide the order of most entries of an ordered index.
///
/// They are the head of the first value, then its rest or the head of the second value, then the beginning of the key. A number is 0 if one
/// before it is only the beginning of a value. It then decides nothing.
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
  /// Returns the beginning of a key as a number that never descends where keys ascend in this order.
  func head(of key: RecordKey) -> UInt64 {
    key.withBytes { bytes in
      // Only integers sort by length first. Other keys sort by their bytes.
      guard case .numbers = self else { return Self.beginning(bytes[...], count: 8) }
      // Of two positive integers the one with more digits is greater, of two negative ones it is less.
      let isNegative = bytes.first == 0x2D
      let digits = bytes.dropFirst(isNegative ? 1 : 0)
      // Of 127 digits or more the length is not stored, and only the comparison of the keys decides.
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

  /// Returns records in the order of their ids, sorted by numbers first, which costs a fraction of comparing the keys.
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
