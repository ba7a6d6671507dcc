/// A JSON object written as a dictionary literal, with `null` for each missing value.
///
/// All keys are present in every row, and each key appears once in the source.
public struct JSONRow: Encodable, Sendable, ExpressibleByDictionaryLiteral {
  /// A coding key for any property name.
  struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  // An array of pairs keeps names whose values are missing, and the order of the literal.
  private var properties: [(name: String, value: (any Encodable & Sendable)?)]

  /// Creates an object from names and values.
  public init(dictionaryLiteral elements: (String, (any Encodable & Sendable)?)...) { properties = elements.map { ($0.0, $0.1) } }

  /// Returns a copy of the object with one more property.
  public func adding(_ name: String, _ value: (any Encodable & Sendable)?) -> JSONRow {
    var row = self
    row.properties.append((name, value))
    return row
  }

  /// Writes every property, with `null` for a missing value.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Name.self)
    for (name, value) in properties {
      let name = Name(stringValue: name)
      // `encodeNil` keeps the key, which readers of the JSON expect in every row.
      if let value { try container.encode(value, forKey: name) } else { try container.encodeNil(forKey: name) }
    }
  }
}
