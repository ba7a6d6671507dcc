internal import Foundation
public import Hummingbird
public import LarderSync

/// The parameters behind the path of a request.
public struct RequestQuery: Sendable {
  /// The most names in a list.
  public static let mostNames = 1_000

  /// The values as they were sent, since in a list a comma within a name is encoded, and one between two names is not.
  private var values: [String: String] = [:]

  /// Reads what stands behind `?` in a request.
  ///
  /// - Throws: As ``init(_:)``.
  public init(of request: Request) throws(SyncProblem) {
    let path = request.head.path ?? ""
    try self.init(path.firstIndex(of: "?").map { String(path[path.index(after: $0)...]) })
  }

  /// Reads what stands behind `?`.
  ///
  /// - Throws: `.malformed` for what is not percent-encoded UTF-8, and for a name that comes twice.
  public init(_ query: String?) throws(SyncProblem) {
    for pair in (query ?? "").split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let old = values.updateValue(String(parts.count > 1 ? parts[1] : ""), forKey: try Self.decoded(parts[0]))
      guard old == nil else { throw .malformed("expected each parameter once, found one twice") }
    }
    for value in values.values { _ = try Self.decoded(value) }
  }

  private static func decoded(_ text: some StringProtocol) throws(SyncProblem) -> String {
    guard let decoded = text.replacingOccurrences(of: "+", with: " ").removingPercentEncoding else {
      throw .malformed("expected parameters in percent-encoding, found others")
    }
    return decoded
  }

  /// Returns a text; `nil` where it is missing or empty.
  public func text(_ name: String) throws(SyncProblem) -> String? {
    guard let value = values[name], !value.isEmpty else { return nil }
    return try Self.decoded(value)
  }

  /// Returns the texts of a list, between commas; none where it is missing or empty, and empty ones are left out.
  public func texts(_ name: String) throws(SyncProblem) -> [String] {
    let parts = (values[name] ?? "").split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count <= Self.mostNames else {
      throw .malformed("expected at most \(Self.mostNames) names for \(name), found \(parts.count)")
    }
    var texts: [String] = []
    for part in parts where !part.isEmpty { texts.append(try Self.decoded(part)) }
    return texts
  }

  /// Returns a number; `nil` where it is missing.
  ///
  /// - Throws: `.malformed`.
  public func number(_ name: String) throws(SyncProblem) -> Int? {
    guard let value = values[name] else { return nil }
    let text = try Self.decoded(value)
    // Int would take a sign, too.
    let isPlain = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard isPlain, let number = Int(text), (0..<(1 << 53)).contains(number) else {
      throw .malformed("expected an integer from 0 to 2^53 for \(name), found another value")
    }
    return number
  }
}
