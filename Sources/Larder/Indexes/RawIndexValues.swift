internal import Synchronization

/// Whether the values of a type with a raw value have the index values of their raw values, as far as this process has seen.
///
/// A type takes ``IndexableValue/hasExactIndexValues`` over from its raw value, but may make an ``IndexableValue/indexValue`` of its own
/// that different values share. The type does not tell, so each value that goes into an index, and each constant of a predicate, is
/// looked at. Where an index value is that of the raw value, it stands for no other value; where one is not, records that an index finds
/// are checked.
final class RawIndexValues: Sendable {
  private let isOwnSeen = Atomic(false)
  private static let types = Mutex<[ObjectIdentifier: RawIndexValues]>([:])

  /// Returns what is known of a type, or of the one that an optional wraps; `nil` when it has no raw value, or does not say that it is
  /// exact.
  static func of<Value: IndexableValue>(_ type: Value.Type) -> RawIndexValues? {
    let wrapped: Any.Type = (type as? any OptionalType.Type)?.wrapped ?? type
    guard wrapped is any RawRepresentable.Type, type.hasExactIndexValues else { return nil }
    return types.withLock { types in
      if let known = types[ObjectIdentifier(wrapped)] { return known }
      let new = RawIndexValues()
      types[ObjectIdentifier(wrapped)] = new
      return new
    }
  }

  /// Whether an index value of the type stands for one value.
  ///
  /// Once `false`, it stays so. What was put into an index before a plan is made has been noted by then.
  var areExact: Bool { !isOwnSeen.load(ordering: .acquiring) }

  /// Looks at a value that is put into an index or searched for.
  func note<Value>(_ value: Value, _ indexValue: IndexValue) {
    guard areExact, var raw = (value as? any RawRepresentable).map({ $0.rawValue as Any }) else { return }
    while let next = raw as? any RawRepresentable { raw = next.rawValue }
    // A raw value that is not indexable says nothing: then the type itself has said that it is exact.
    guard let indexable = raw as? any IndexableValue, indexable.indexValue != indexValue else { return }
    isOwnSeen.store(true, ordering: .releasing)
  }
}

extension IndexableValue {
  /// Whether an index value of the type stands for one value, as the type says and its values confirm.
  static var standsForOneValue: Bool { hasExactIndexValues && RawIndexValues.of(Self.self)?.areExact ?? true }
}

/// An optional, whatever it wraps.
protocol OptionalType {
  static var wrapped: Any.Type { get }
}
extension Optional: OptionalType {
  static var wrapped: Any.Type { Wrapped.self }
}
