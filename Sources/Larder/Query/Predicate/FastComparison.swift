import Foundation

/// Comparisons of a key path with a constant, for the types that are met most: as one closure, specialized for the type.
enum FastComparison {
  typealias Operator = PredicateExpressions.ComparisonOperator

  static func equal<Environment, Value>(_ read: Compiled<Environment, Value>, _ constant: Value?) -> Compiled<Environment, Bool>? {
    guard let path = read.path, let constant else { return nil }
    return switch constant {
    case let constant as Int: equal(path, constant)
    case let constant as String: equal(path, constant)
    case let constant as Double: equal(path, constant)
    case let constant as Bool: equal(path, constant)
    case let constant as UUID: equal(path, constant)
    case let constant as Date: equal(path, constant)
    default: nil
    }
  }

  static func ordered<Environment, Value>(
    _ read: Compiled<Environment, Value>, _ comparison: Operator, _ constant: Value?
  ) -> Compiled<Environment, Bool>? {
    guard let path = read.path, let constant else { return nil }
    return switch constant {
    case let constant as Int: ordered(path, comparison, constant)
    case let constant as String: ordered(path, comparison, constant)
    case let constant as Double: ordered(path, comparison, constant)
    case let constant as Date: ordered(path, comparison, constant)
    default: nil
    }
  }

  /// Returns the comparison; `nil` where the path has another type than the constant, such as an optional one.
  @inline(__always)
  private static func equal<Environment, Value, T: Equatable & Sendable>(
    _ path: ValuePath<Environment, Value>, _ constant: T
  ) -> Compiled<Environment, Bool>? {
    guard let keyPath = recast(path.keyPath, to: (any KeyPath<Environment, T> & Sendable).self) else { return nil }
    let read = PropertyReader(keyPath)
    return Compiled { read($0) == constant }
  }

  @inline(__always)
  private static func ordered<Environment, Value, T: Comparable & Sendable>(
    _ path: ValuePath<Environment, Value>, _ comparison: Operator, _ constant: T
  ) -> Compiled<Environment, Bool>? {
    guard let keyPath = recast(path.keyPath, to: (any KeyPath<Environment, T> & Sendable).self) else { return nil }
    let read = PropertyReader(keyPath)
    return switch comparison {
    case .lessThan: Compiled { read($0) < constant }
    case .lessThanOrEqual: Compiled { read($0) <= constant }
    case .greaterThan: Compiled { read($0) > constant }
    case .greaterThanOrEqual: Compiled { read($0) >= constant }
    @unknown default: nil
    }
  }
}
