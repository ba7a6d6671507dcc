/// An object of JSON, made as a literal: each name beside its value, and `null` for values that are missing.
///
/// So the keys of what is written are always the same, and each is told once.
public struct JSONRow: Encodable, Sendable, ExpressibleByDictionaryLiteral {
  /// A name of a property.
  struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  private var properties: [(name: String, value: (any Encodable & Sendable)?)]

  /// Makes an object of its properties.
  public init(dictionaryLiteral elements: (String, (any Encodable & Sendable)?)...) { properties = elements.map { ($0.0, $0.1) } }

  /// Returns the object with one more property.
  public func adding(_ name: String, _ value: (any Encodable & Sendable)?) -> JSONRow {
    var row = self
    row.properties.append((name, value))
    return row
  }

  /// Writes every property.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Name.self)
    for (name, value) in properties {
      let name = Name(stringValue: name)
      if let value { try container.encode(value, forKey: name) } else { try container.encodeNil(forKey: name) }
    }
  }
}
