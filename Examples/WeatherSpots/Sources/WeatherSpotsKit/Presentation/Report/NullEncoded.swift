/// A property wrapper that encodes `nil` as `null` and so keeps the property's key in the output.
@propertyWrapper public struct NullEncoded<Value: Encodable & Sendable>: Encodable, Sendable {
  /// The wrapped value, or `nil` to write `null`.
  public var wrappedValue: Value?

  /// Wraps a value.
  public init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

  /// Writes the value, or `null`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    // The wrapper itself is not optional, so synthesized code always calls this function and the key stays.
    if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
  }
}
