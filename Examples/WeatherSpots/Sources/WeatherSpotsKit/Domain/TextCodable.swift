/// A type whose values are encoded as their text.
public protocol TextCodable: LosslessStringConvertible, Codable {
  /// Description of the expected text, for decoding errors.
  static var expectedText: String { get }
}

extension TextCodable {
  /// Decodes the value from its text.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let value = Self(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not \(Self.expectedText)")
    }
    self = value
  }

  /// Encodes the value as its text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
