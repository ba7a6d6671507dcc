import Foundation

/// The result of analyzing a condition: its constraint on one key path, and whether the constraint is all of it.
struct Finding {
  let constraint: Constraint
  let isExact: Bool

  init(_ constraint: Constraint, isExact: Bool = true) {
    self.constraint = constraint
    self.isExact = isExact
  }
}

/// The properties of an indexable type that the analysis of conditions uses.
struct IndexedType {
  /// True if values are equal exactly if their index values are, by the type's declaration and the constants seen so far.
  var isExact: Bool { isSaidExact && rawValues?.areExact ?? true }
  private let isSaidExact: Bool
  private let rawValues: RawIndexValues?
  /// True if `<` is the order of the index values.
  let isOrdered: Bool
  /// True if the type has values that are NaN.
  let isReal: Bool
  private let isDate: Bool
  private let type: any IndexableValue.Type

  init?(_ type: Any.Type) {
    // Most compared properties are of these two types, which then need no look-up of a conformance.
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
    // Another type's `<` may differ from the order of its index values, and `nil` compares with nothing.
    isOrdered = (isReal || isOwn) && ownType == type
  }

  private static let ordered: [Any.Type] = [
    Int.self, Int8.self, Int16.self, Int32.self, Int64.self, UInt.self, UInt8.self, UInt16.self, UInt32.self, UInt64.self,
    String.self, UUID.self,
  ]

  /// Returns the index value of a value of the type, or `nil` for a value of another type.
  func indexValue<Value>(_ value: Value) -> IndexValue? {
    // A checked cast would take longer than the rest of this function.
    if Value.self == String.self { return IndexValue(unsafeBitCast(value, to: String.self)) }
    if Value.self == Int.self { return IndexValue(Int64(unsafeBitCast(value, to: Int.self))) }
    guard let indexValue = type.indexValue(of: value) else { return nil }
    // A constant may be the first value seen whose index value differs from its raw value's.
    rawValues?.note(value, indexValue)
    return indexValue
  }

  /// Returns the condition that the value at a path equals one of some values.
  func oneOf(_ path: ItemPath, _ values: [IndexValue]) -> Finding {
    // NaN equals nothing, not even itself. Types of the app may define equality otherwise.
    let values = isExact ? values.filter { $0 != .notANumber } : values
    return Finding(.oneOf(path, among: values), isExact: isExact)
  }

  /// Returns the condition that the value at a path compares with another, or `nil` if index values do not have the type's order.
  func compared(_ path: ItemPath, _ comparison: PredicateExpressions.ComparisonOperator, _ value: IndexValue) -> Finding? {
    switch comparison {
    case .lessThan: range(path, lower: nil, upper: Bound(value: value, isInclusive: false))
    case .lessThanOrEqual: range(path, lower: nil, upper: Bound(value: value, isInclusive: true))
    case .greaterThan: range(path, lower: Bound(value: value, isInclusive: false), upper: nil)
    case .greaterThanOrEqual: range(path, lower: Bound(value: value, isInclusive: true), upper: nil)
    @unknown default: nil
    }
  }

  /// Returns the condition that the value at a path lies between bounds, or `nil` if no index can answer it.
  func range(_ path: ItemPath, lower: Bound?, upper: Bound?) -> Finding? {
    guard isOrdered else { return nil }
    let isNumber = { (bound: Bound?) in bound?.value != .notANumber }
    if isDate {
      // For dates, `a <= b` is `!(b < a)`. So a NaN date is within every inclusive bound, and every date within a NaN bound.
      let bounds = [lower, upper].compactMap { $0 }
      let isInclusive = bounds.allSatisfy(\.isInclusive)
      if !bounds.allSatisfy({ $0.isInclusive || isNumber($0) }) { return Finding(.never) }
      let (lower, upper) = (isNumber(lower) ? lower : nil, isNumber(upper) ? upper : nil)
      if isInclusive && lower == nil && upper == nil { return Finding(.always) }
      return range(path, realLower: lower, realUpper: upper, orNotANumber: isInclusive)
    }
    // Any comparison with NaN is false for floating-point numbers.
    guard isNumber(lower), isNumber(upper) else { return Finding(.never) }
    if isReal { return range(path, realLower: lower, realUpper: upper, orNotANumber: false) }
    return Self.isEmpty(lower, upper) ? Finding(.never) : Finding(.range(path, lower: lower, upper: upper, orNotANumber: false))
  }

  private func range(_ path: ItemPath, realLower: Bound?, realUpper: Bound?, orNotANumber: Bool) -> Finding? {
    // The infinities exclude NaN, which sorts behind them.
    let lower = realLower ?? Bound(value: IndexValue(-Double.infinity), isInclusive: true)
    let upper = realUpper ?? Bound(value: IndexValue(Double.infinity), isInclusive: true)
    // Only NaN meets an empty range here, which no index range expresses. Every record is tested instead.
    if Self.isEmpty(lower, upper) { return orNotANumber ? nil : Finding(.never) }
    return Finding(.range(path, lower: lower, upper: upper, orNotANumber: orNotANumber))
  }

  private static func isEmpty(_ lower: Bound?, _ upper: Bound?) -> Bool {
    guard let lower, let upper else { return false }
    return lower.value > upper.value || (lower.value == upper.value && !(lower.isInclusive && upper.isInclusive))
  }
}

extension Constraint {
  /// Returns the constraint for one of some values, in any number, order and repetition.
  static func oneOf(_ path: ItemPath, among values: [IndexValue]) -> Constraint {
    // The usual case, without a set.
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
  /// Returns the key path that an expression reads from the item, or `nil` if it does anything else.
  func path<E: StandardPredicateExpression>(of expression: E) -> ItemPath? {
    // Nearly every path is a key path from the item. This cast to a concrete type is cheaper than a search for conformances.
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
  /// Returns the index value of a value that generic code cannot cast statically to this type.
  fileprivate static func indexValue<Value>(of value: Value) -> IndexValue? { recast(value, to: Self.self)?.indexValue }
}
