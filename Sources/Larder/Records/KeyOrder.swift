/// The order of the ids of a type, as far as their keys show it: integers by number, everything else by the bytes of the key.
enum KeyOrder: Sendable {
  case bytes
  case numbers

  var isOfBytes: Bool { if case .bytes = self { true } else { false } }

  /// Chooses the order for a type of ids, looking through raw values.
  init(of type: Any.Type) { self = innermostRawType(of: type) is any FixedWidthInteger.Type ? .numbers : .bytes }

  /// Whether the left key comes first.
  func isBefore(_ left: RecordKey, _ right: RecordKey) -> Bool {
    guard case .numbers = self else { return left < right }
    // Decimal digits without leading zeros: the longer number is the greater one, unless both are negative.
    let (isLeftNegative, isRightNegative) = (left.isNegative, right.isNegative)
    if isLeftNegative != isRightNegative { return isLeftNegative }
    let (first, second) = isLeftNegative ? (right, left) : (left, right)
    return first.byteCount == second.byteCount ? first < second : first.byteCount < second.byteCount
  }
}

/// A key that compares in the order of its ids.
struct OrderedKey: Comparable, Sendable {
  let key: RecordKey
  let order: KeyOrder

  static func == (left: OrderedKey, right: OrderedKey) -> Bool { left.key == right.key }
  static func < (left: OrderedKey, right: OrderedKey) -> Bool { left.order.isBefore(left.key, right.key) }
}

extension RecordKey {
  fileprivate var isNegative: Bool { text.utf8.first == 0x2D }
}
