/// A value written with the names of all its properties: with `null` for those that have no value, which its own encoding leaves out.
public struct EveryKey<Value: Encodable & Sendable>: Encodable, Sendable {
  private let value: Value

  /// Makes the written form of a value.
  public init(_ value: Value) { self.value = value }

  /// Writes every stored property of the value under its name.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: JSONRow.Name.self)
    for case (let name?, let property) in Mirror(reflecting: value).children {
      if let property = property as? any Encodable { try container.encode(property, forKey: .init(stringValue: name)) }
    }
  }
}
