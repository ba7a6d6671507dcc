import Foundation

/// The result of analyzing a condition: its constraint on one key path, and whether the constraint expresses the whole condition.
struct Finding {
  let constraint: Constraint
  let isExact: Bool

  init(_ constraint: Constraint, isExact: Bool = true) {
    self.constraint = constraint
    self.isExact = isExact
  }
}

/// A type of compared values that has index values, with the properties that the analysis of conditions needs.
struct IndexedType {
  /// True if two values of the type are equal if and only if their index values are, as far as the values seen so far show.
  var isExact: Bool { isSaidExact && rawValues?.areExact ?? true }
  private let isSaidExact: Bool
  private let rawValues: RawIndexValues?
  /// True if the type's `<` gives the order of its index values.
  let isOrdered: Bool
  /// True if the type has NaN values.
  let isReal: Bool
  private let isDate: Bool
  private let type: any IndexableValue.Type

  init?(_ type: Any.Type) {
    // Most compared properties are `String` or `Int`, so for these two types the look-up of a protocol conformance is avoided.
    if type == String.self { self = .text } else if type == Int.self { self = .integer } else { self.init(other: type) }
  }

  private static let text = IndexedType(own: String.self)
  private static let integer = IndexedType(own: Int.self)

  private init(own type: any IndexableValue.Type) {
    self.type = type
    (isSaidExact, rawValues, isOrdered, isReal, isDate) = (true, nil, true, false, false)
  }

  private init?(other type: Any.Type) {
    guard let indexable = type as? any IndexableValue.Type else { return nil }
    self.type = indexable
    let ownType = (type as? any OptionalType.Type)?.wrapped ?? type
    isDate = ownType == Date.self
    isReal = [Double.self, Float.self, Date.self].contains { $0 == ownType }
    let isOwn = Self.ordered.contains { $0 == ownType }
    isSaidExact = indexable.hasExactIndexValues
    rawValues = isOwn || isReal ? nil : RawIndexValues.of(indexable)
    // The `<` of a type of the app may differ from the order of its index values. An optional type has no `<`.
    isOrdered = (isReal || isOwn) && ownType == type
  }

  private static let ordered: [Any.Type] = [
    Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self, UInt16.self, UInt32.self, UInt64.self,
    String.self, UUID.self,
  ]

  /// Returns the index value of a value, or `nil` if the value is not of the type.
  func indexValue<Value>(_ value: Value) -> IndexValue? {
    // `String` and `Int` values are cast without a check, because a checked cast would take longer than the rest of `indexValue(_:)`.
    if Value.self == String.self { return IndexValue(unsafeBitCast(value, to: String.self)) }
    if Value.self == Int.self { return IndexValue(Int64(unsafeBitCast(value, to: Int.self))) }
    guard let indexValue = type.indexValue(of: value) else { return nil }
    // A type of the app may define its own index values. If the index value of the constant differs from that of its raw value, the type no
    // longer counts as exact.
    rawValues?.note(value, indexValue)
    return indexValue
  }

  /// Returns the finding that the value at a key path equals one of the given values.
  func oneOf(_ path: ItemPath, _ values: [IndexValue]) -> Finding {
    // NaN equals no value, not even NaN, so an index value of NaN is removed from `values`. If the app's type is not exact, it may define
    // equality in another way, so its NaN values stay.
    let values = isExact ? values.filter { $0 != .notANumber } : values
    return Finding(.oneOf(path, among: values), isExact: isExact)
  }

  /// Returns the finding of a comparison by order, or `nil` if the type's index values have another order than the type.
  func compared(_ path: ItemPath, by comparison: PredicateExpressions.ComparisonOperator, with value: IndexValue) -> Finding? {
    switch comparison {
    case .lessThan: range(path, lower: nil, upper: Bound(value: value, isInclusive: false))
    case .lessThanOrEqual: range(path, lower: nil, upper: Bound(value: value, isInclusive: true))
    case .greaterThan: range(path, lower: Bound(value: value, isInclusive: false), upper: nil)
    case .greaterThanOrEqual: range(path, lower: Bound(value: value, isInclusive: true), upper: nil)
    @unknown default: nil
    }
  }

  /// Returns the finding that the value at a key path lies between bounds, or `nil` if no range of an index expresses this condition.
  func range(_ path: ItemPath, lower: Bound?, upper: Bound?) -> Finding? {
    guard isOrdered else { return nil }
    let isNumber = { (bound: Bound?) in bound?.value != .notANumber }
    if isDate {
      // For dates, Foundation defines `a <= b` as `!(b < a)`, and `<` with NaN is false. A NaN date therefore meets every inclusive bound,
      // and every date meets an inclusive bound that is NaN.
      let bounds = [lower, upper].compactMap { $0 }
      let isInclusive = bounds.allSatisfy(\.isInclusive)
      if !bounds.allSatisfy({ $0.isInclusive || isNumber($0) }) { return Finding(.never) }
      let (lower, upper) = (isNumber(lower) ? lower : nil, isNumber(upper) ? upper : nil)
      if isInclusive && lower == nil && upper == nil { return Finding(.always) }
      return range(path, realLower: lower, realUpper: upper, orNotANumber: isInclusive)
    }
    // For floating-point numbers every comparison with NaN is false, so no record meets a condition with a NaN bound.
    guard isNumber(lower), isNumber(upper) else { return Finding(.never) }
    if isReal { return range(path, realLower: lower, realUpper: upper, orNotANumber: false) }
    return Self.isEmpty(lower, upper) ? Finding(.never) : Finding(.range(path, lower: lower, upper: upper, orNotANumber: false))
  }

  private func range(_ path: ItemPath, realLower: Bound?, realUpper: Bound?, orNotANumber: Bool) -> Finding? {
    // NaN sorts after infinity, so a range with infinity as its upper bound excludes NaN.
    let lower = realLower ?? Bound(value: IndexValue(-Double.infinity), isInclusive: true)
    let upper = realUpper ?? Bound(value: IndexValue(Double.infinity), isInclusive: true)
    // If the range between the bounds is empty, only NaN dates meet the condition. No index range can express that only NaN is met, so
    // every record is tested.
    if Self.isEmpty(lower, upper) { return orNotANumber ? nil : Finding(.never) }
    return Finding(.range(path, lower: lower, upper: upper, orNotANumber: orNotANumber))
  }

  private static func isEmpty(_ lower: Bound?, _ upper: Bound?) -> Bool {
    guard let lower, let upper else { return false }
    return lower.value > upper.value || (lower.value == upper.value && !(lower.isInclusive && upper.isInclusive))
  }
}

extension Constraint {
  /// Returns the constraint that the value equals one of `values`, which may be unsorted and contain repetitions.
  static func oneOf(_ path: ItemPath, among values: [IndexValue]) -> Constraint {
    // A constraint with one value is the usual case, and needs no set of values.
    if values.count == 1 { return .equal(path, values[0]) }
    let values = Set(values).sorted()
    return switch values.count {
    case 0: .never
    case 1: .equal(path, values[0])
    default: .oneOf(path, values)
    }
  }
}

extension Scope {
  /// Returns the key path that an expression reads from the record, or `nil` if the expression does more than read a key path.
  func path<E: StandardPredicateExpression>(of expression: E) -> ItemPath? {
    // Nearly every compared expression is a key path from the record, and a cast to its concrete type is cheaper than a search for a
    // protocol conformance.
    if let direct = expression as? PredicateExpressions.KeyPath<PredicateExpressions.Variable<Environment>, E.Output>,
      direct.trap == nil, isItem(direct.root)
    {
      return direct.keyPath
    }
    do {
      guard let path = try compile(expression).path, !path.isAll else { return nil }
      return path.keyPath
    } catch {
      return nil
    }
  }
}

extension IndexableValue {
  /// Returns the index value of `value`, whose static type in generic code is not `Self`.
  fileprivate static func indexValue<Value>(of value: Value) -> IndexValue? { recast(value, to: Self.self)?.indexValue }
}
