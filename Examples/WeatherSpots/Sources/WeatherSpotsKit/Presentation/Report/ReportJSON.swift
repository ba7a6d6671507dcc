public import Foundation

/// The form in which reports are written for machines.
public enum ReportJSON {
  /// Returns a value as one line of JSON: keys in snake case and in order, nothing in it that a terminal obeys.
  public static func text(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    return String(decoding: try encoder.encode(value), as: UTF8.self).escapedForJSON
  }

  /// Returns the same as bytes, with the end of a line.
  public static func data(_ value: some Encodable) throws -> Data { Data((try text(value) + "\n").utf8) }
}
