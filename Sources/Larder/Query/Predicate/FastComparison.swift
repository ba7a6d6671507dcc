import Foundation

/// Comparisons of a key path with a constant, for the types that are met most: as one closure, specialized for the type.
enum FastComparison {
  typealias Operator = PredicateExpressions.ComparisonOperator

  static func equal<Environment, Value>(_ read: Compiled<Environment, Value>, _ constant: Value?) -> Compiled<Environment, Bool>? {
    guard let place = read.place, let constant else { return nil }
    return switch constant {
    case let constant as Int: equal(place, constant)
    case let constant as String: equal(place, constant)
    case let constant as Double: equal(place, constant)
    case let constant as Bool: equal(place, constant)
    case let constant as UUID: equal(place, constant)
    case let constant as Date: equal(place, constant)
    default: nil
    }
  }

  static func ordered<Environment, Value>(
    _ read: Compiled<Environment, Value>, _ comparison: Operator, _ constant: Value?
  ) -> Compiled<Environment, Bool>? {
    guard let place = read.place, let constant else { return nil }
    return switch constant {
    case let constant as Int: ordered(place, comparison, constant)
    case let constant as String: ordered(place, comparison, constant)
    case let constant as Double: ordered(place, comparison, constant)
    case let constant as Date: ordered(place, comparison, constant)
    default: nil
    }
  }

  /// A wrapped constant is of another type than an optional's place: it is not compared here.
  @inline(__always)
  private static func equal<Environment, Value, T: Equatable & Sendable>(
    _ place: Place<Environment, Value>, _ constant: T
  ) -> Compiled<Environment, Bool>? {
    guard let path = recast(place.path, to: (any KeyPath<Environment, T> & Sendable).self) else { return nil }
    return Compiled { $0[keyPath: path as KeyPath<Environment, T>] == constant }
  }

  @inline(__always)
  private static func ordered<Environment, Value, T: Comparable & Sendable>(
    _ place: Place<Environment, Value>, _ comparison: Operator, _ constant: T
  ) -> Compiled<Environment, Bool>? {
    guard let path = recast(place.path, to: (any KeyPath<Environment, T> & Sendable).self) else { return nil }
    return switch comparison {
    case .lessThan: Compiled { $0[keyPath: path as KeyPath<Environment, T>] < constant }
    case .lessThanOrEqual: Compiled { $0[keyPath: path as KeyPath<Environment, T>] <= constant }
    case .greaterThan: Compiled { $0[keyPath: path as KeyPath<Environment, T>] > constant }
    case .greaterThanOrEqual: Compiled { $0[keyPath: path as KeyPath<Environment, T>] >= constant }
    @unknown default: nil
    }
  }
}
