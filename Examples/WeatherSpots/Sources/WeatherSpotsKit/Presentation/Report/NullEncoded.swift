/// A value that is written as `null` when there is none, so that the keys of what is written are always the same.
@propertyWrapper public struct NullEncoded<Value: Encodable & Sendable>: Encodable, Sendable {
  /// The value.
  public var wrappedValue: Value?

  /// Wraps a value.
  public init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

  /// Writes the value, or `null`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
  }
}
