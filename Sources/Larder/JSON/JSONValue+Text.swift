public import Foundation

/// The text of a value, for tools that look into stores.
@_spi(Inspection)
extension JSONValue {
  /// Reads a text, numbers digit by digit.
  /// - Throws: `.decodingFailed` for a text that is not one JSON value, that nests deeper than a record may, or that has an object with two
  ///   members of one name.
  public init(json: Data) throws(RepositoryError) { self = try JSONReader.value(of: json) }

  /// The value as one line of JSON, names sorted.
  public var json: Data { JSONWriter.json(of: self) }
}
