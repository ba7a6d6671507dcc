internal import Foundation
public import Hummingbird

/// Query parameters of a request.
public struct RequestQuery: Sendable {
  /// Maximum number of names in a list parameter.
  public static let mostNames = 1_000

  /// Values as they were sent: a comma within a name of a list is percent-encoded, and a comma between two names is not.
  private var values: [String: String] = [:]

  /// Reads the query of a request.
  ///
  /// - Throws: A problem of status 400, as ``init(_:)``.
  public init(of request: Request) throws(HTTPProblem) {
    let path = request.head.path ?? ""
    try self.init(path.firstIndex(of: "?").map { String(path[path.index(after: $0)...]) })
  }

  /// Reads a query, which is the text after `?`.
  ///
  /// - Throws: A problem of status 400 for text that is not percent-encoded UTF-8, and for a parameter that occurs twice.
  public init(_ query: String?) throws(HTTPProblem) {
    for pair in (query ?? "").split(separator: "&") {
      // Only the first `=` separates, since a value may contain others.
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let old = values.updateValue(String(parts.count > 1 ? parts[1] : ""), forKey: try Self.decoded(parts[0]))
      // The use of either value would hide the mistake of a client.
      guard old == nil else { throw .malformed("expected each parameter once, found one twice") }
    }
    // Decoded here once for its error, so that routes without parameters refuse a malformed query, too.
    for value in values.values { _ = try Self.decoded(value) }
  }

  private static func decoded(_ text: some StringProtocol) throws(HTTPProblem) -> String {
    // HTML forms encode a space as `+`.
    guard let decoded = text.replacingOccurrences(of: "+", with: " ").removingPercentEncoding else {
      throw .malformed("expected parameters in percent-encoding, found others")
    }
    return decoded
  }

  /// Returns a parameter as text, or `nil` if it is missing or empty.
  public func text(_ name: String) throws(HTTPProblem) -> String? {
    guard let value = values[name], !value.isEmpty else { return nil }
    return try Self.decoded(value)
  }

  /// Returns the names in a comma-separated parameter, without empty ones.
  ///
  /// A missing parameter has none.
  ///
  /// - Throws: A problem of status 400 for more than ``mostNames`` names.
  public func texts(_ name: String) throws(HTTPProblem) -> [String] {
    // Split before decoding, since an encoded comma belongs to a name.
    let parts = (values[name] ?? "").split(separator: ",", omittingEmptySubsequences: false)
    // Counted before any name is decoded, so that a list that is too long costs little.
    guard parts.count <= Self.mostNames else {
      throw .malformed("expected at most \(Self.mostNames) names for \(name), found \(parts.count)")
    }
    var texts: [String] = []
    for part in parts where !part.isEmpty { texts.append(try Self.decoded(part)) }
    return texts
  }

  /// Returns a parameter as an integer, or `nil` if it is missing.
  ///
  /// - Throws: A problem of status 400 for a value other than an integer from 0 to 2^53 − 1.
  public func number(_ name: String) throws(HTTPProblem) -> Int? {
    guard let value = values[name] else { return nil }
    let text = try Self.decoded(value)
    // `Int` alone would accept a sign.
    let isPlain = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard isPlain, let number = Int(text), (0..<(1 << 53)).contains(number) else {
      throw .malformed("expected an integer from 0 to 2^53 - 1 for \(name), found another value")
    }
    return number
  }
}
