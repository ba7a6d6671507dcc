public import Foundation

/// The JSON format of all reports.
public enum ReportJSON {
  /// Returns a value as one line of JSON with sorted keys in snake case and control characters escaped.
  public static func text(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    // Sorted keys make the output of two runs comparable. Escaped slashes would break links for people who copy them.
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    // Names and warnings come from servers, and the encoder leaves C1 and bidirectional controls as they are.
    return String(decoding: try encoder.encode(value), as: UTF8.self).escapedForJSON
  }

  /// Returns a value as one line of JSON in UTF-8, with a line end.
  public static func data(_ value: some Encodable) throws -> Data { Data((try text(value) + "\n").utf8) }
}
