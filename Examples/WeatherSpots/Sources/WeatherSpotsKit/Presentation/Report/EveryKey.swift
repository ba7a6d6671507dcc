/// An encoding of a value that writes every stored property, with `null` for properties that are `nil`.
public struct EveryKey<Value: Encodable & Sendable>: Encodable, Sendable {
  private let value: Value

  /// Wraps a value.
  public init(_ value: Value) { self.value = value }

  /// Writes every stored property of the value under its name.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: JSONRow.Name.self)
    // A synthesized `encode(to:)` leaves out properties that are `nil`. A mirror lists them too.
    for case (let name?, let property) in Mirror(reflecting: value).children {
      if let property = property as? any Encodable { try container.encode(property, forKey: .init(stringValue: name)) }
    }
  }
}
