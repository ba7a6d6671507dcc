internal import Foundation
internal import LarderSync

/// The parameters behind the path of a request.
struct RequestQuery: Sendable {
  /// The most names in a list.
  static let mostNames = 1_000

  /// The values as they were sent, since in a list a comma within a name is encoded, and one between two names is not.
  private var values: [String: String] = [:]

  /// Reads what stands behind `?`.
  ///
  /// - Throws: `.malformed` for what is not percent-encoded UTF-8.
  init(_ query: String?) throws(SyncProblem) {
    for pair in (query ?? "").split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      values[try Self.decoded(parts[0])] = String(parts.count > 1 ? parts[1] : "")
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
  func text(_ name: String) throws(SyncProblem) -> String? {
    guard let value = values[name], !value.isEmpty else { return nil }
    return try Self.decoded(value)
  }

  /// Returns the texts of a list, between commas; none where it is missing or empty.
  func texts(_ name: String) throws(SyncProblem) -> [String] {
    var texts: [String] = []
    for value in (values[name] ?? "").split(separator: ",") { texts.append(try Self.decoded(value)) }
    guard texts.count <= Self.mostNames else {
      throw .malformed("expected at most \(Self.mostNames) names for \(name), found \(texts.count)")
    }
    return texts
  }

  /// Returns a number; `nil` where it is missing.
  ///
  /// - Throws: `.malformed`.
  func number(_ name: String) throws(SyncProblem) -> Int? {
    guard let text = try text(name) else { return nil }
    guard let number = Int(text), (0..<(1 << 53)).contains(number) else {
      throw .malformed("expected an integer from 0 to 2^53 for \(name), found another value")
    }
    return number
  }

  /// Returns the question for changes that the parameters are.
  ///
  /// - Parameter longestWait: The seconds that a question waits at most, whatever it asks for.
  ///
  /// - Throws: `.malformed`.
  func changesRequest(longestWait: Int) throws(SyncProblem) -> SyncChangesRequest {
    let collections = try texts("collections")
    for name in collections { try WireLimits.check(name, named: "collections") }
    return SyncChangesRequest(
      device: try text("device") ?? "", history: try text("history"), since: try number("since") ?? 0,
      limit: min(max(try number("limit") ?? 1_000, 1), 5_000),
      collections: collections, wait: min(try number("wait") ?? 0, longestWait),
      from: try number("from"))
  }
}
