internal import Foundation

/// The beginning of an index value as one number: of values in order, the numbers ascend or are equal.
///
/// Most comparisons end with it, without a look at texts elsewhere in memory. Three bits are the kind of the value and 56 its beginning;
/// the last five say whether that is all of it, and the length of a short text.
enum IndexHead {
  /// The bit that is set where the value has more than its head.
  private static let isPart: UInt64 = 8

  /// Returns the head of a value in a column, which may descend.
  static func of(_ value: IndexValue, isDescending: Bool) -> UInt64 {
    let head = ascending(value)
    return isDescending ? ~head : head
  }

  /// Whether values with this head are equal.
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
    let limit: Int64 = 1 << 55
    if value >= limit - 1 { return head(2, 1 << 56 - 1) | isPart }  // UInt64
    if value <= -limit { return head(2, 0) | isPart }
    return head(2, UInt64(value + limit))
  }

  private static func real(_ value: Double) -> UInt64 {
    let bits = ascendingBits(value)
    return head(4, bits >> 8) | (bits & 0xFF == 0 ? 0 : isPart)
  }

  /// Returns bits that ascend with the numbers, as those of numbers do that are not negative; those of negative ones descend.
  private static func ascendingBits(_ value: Double) -> UInt64 {
    let bits = value.bitPattern
    return bits >> 63 == 0 ? bits | 1 << 63 : ~bits  // UInt64
  }

  /// Returns the first seven bytes, in the form in which texts are compared, and their number.
  private static func text(_ value: String) -> UInt64 {
    let (beginning, count) = bytes(of: value, from: 0, count: 7)
    return head(5, beginning) | (count > 7 ? isPart : UInt64(count))
  }

  /// Returns the value of a head in a column, which may descend; of one that is not exact with the number of ``rest(of:isDescending:)``,
  /// where that is the rest.
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
    case 5: IndexValue(text(beginning, count: Int(head & 7)))
    case 7: .notANumber
    default: .null
    }
  }

  private static func text(_ beginning: UInt64, count: Int) -> String {
    withUnsafeBytes(of: (beginning << 8).bigEndian) { String(decoding: $0.prefix(count), as: UTF8.self) }
  }

  /// Returns the number of ``ascendingBits(_:)``.
  private static func number(ascendingBits bits: UInt64) -> Double { Double(bitPattern: bits >> 63 == 1 ? bits ^ 1 << 63 : ~bits) }

  /// Returns what follows the head of a value that is not exact, as a number that ascends with the values; and whether that is the rest.
  static func rest(of value: IndexValue, isDescending: Bool) -> (number: UInt64, isAll: Bool) {
    let (number, isAll) = rest(of: value)
    return (isDescending ? ~number : number, isAll)
  }

  private static func rest(of value: IndexValue) -> (number: UInt64, isAll: Bool) {
    switch value.form {
    case .integer(let value): (UInt64(bitPattern: value) ^ 1 << 63, true)
    case .large(let value): (value & 0xFF, true)
    case .real(let value): (ascendingBits(value) & 0xFF, true)
    case .text(let value): (bytes(of: value, from: 7, count: 8).number, false)
    case .identifier(let high, let low): (high << 56 | low >> 8, false)
    case .null, .bool, .notANumber: (0, true)
    }
  }

  /// Returns some bytes of a text in the form in which texts are compared, zeros behind its end, and the length of the text in that form.
  ///
  /// It is the form that is written where no scalar from U+0300 on is near, of which the first combines: neither in the bytes nor right
  /// behind them, where it may change the scalar before. Others take a byte or two, the first of which is below that of U+0300.
  private static func bytes(of text: String, from start: Int, count: Int) -> (number: UInt64, length: Int) {
    var text = text
    let isPlain = text.withUTF8 { bytes in bytes.prefix(start + count + 2).allSatisfy { $0 < 0xCC } }
    if !isPlain { text = text.precomposedStringWithCanonicalMapping }
    return text.withUTF8 { bytes in
      var number: UInt64 = 0
      for position in start..<start + count { number = number << 8 | (position < bytes.count ? UInt64(bytes[position]) : 0) }
      return (number, bytes.count)
    }
  }
}

/// The numbers that decide between most entries of an ordered index.
///
/// The head of the first value, the rest of it or the head of the second one, and the beginning of the key. A number is 0 when one before
/// it is only the beginning of a value: then it decides nothing.
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
  /// Returns the beginning of a key as a number: of keys in this order, the numbers ascend or are equal.
  func head(of key: RecordKey) -> UInt64 {
    key.withBytes { bytes in
      guard case .numbers = self else { return Self.beginning(bytes[...], count: 8) }
      // The longer number is the greater one, and the lesser one if it is negative.
      let isNegative = bytes.first == 0x2D
      let digits = bytes.dropFirst(isNegative ? 1 : 0)
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
  /// Numbers are sorted, which is a fraction of comparing the keys.
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
