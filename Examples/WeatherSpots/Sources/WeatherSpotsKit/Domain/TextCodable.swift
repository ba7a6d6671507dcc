/// A value that is stored as its text.
public protocol TextCodable: LosslessStringConvertible, Codable {
  /// A description of the text, for the error of one that is not read.
  static var expectedText: String { get }
}

extension TextCodable {
  /// Reads the text.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let value = Self(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not \(Self.expectedText)")
    }
    self = value
  }

  /// Writes the text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
