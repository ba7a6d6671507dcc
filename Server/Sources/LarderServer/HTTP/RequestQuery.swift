internal import Foundation
internal import LarderSync

/// The parameters behind the path of a request.
struct RequestQuery: Sendable {
  private var values: [String: String] = [:]

  /// Reads what stands behind `?`.
  ///
  /// - Throws: `.malformed` for what is not percent-encoded UTF-8.
  init(_ query: String?) throws(SyncProblem) {
    for pair in (query ?? "").split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = parts[0].removingPercentEncoding,
        let value = (parts.count > 1 ? parts[1] : "").replacingOccurrences(of: "+", with: " ").removingPercentEncoding
      else { throw .malformed("expected parameters in percent-encoding, found others") }
      values[name] = value
    }
  }

  /// Returns a text; `nil` where it is missing or empty.
  func text(_ name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

  /// Returns a number; `nil` where it is missing.
  ///
  /// - Throws: `.malformed`.
  func number(_ name: String) throws(SyncProblem) -> Int? {
    guard let text = text(name) else { return nil }
    guard let number = Int(text), (0...(1 << 53)).contains(number) else {
      throw .malformed("expected an integer from 0 to 2^53 for \(name), found another value")
    }
    return number
  }

  /// Returns the question for changes that the parameters are.
  ///
  /// - Throws: `.malformed`.
  func changesRequest() throws(SyncProblem) -> SyncChangesRequest {
    SyncChangesRequest(
      device: text("device") ?? "", history: text("history"), since: try number("since") ?? 0,
      limit: min(max(try number("limit") ?? 1_000, 1), 5_000),
      collections: (text("collections") ?? "").split(separator: ",").map(String.init), wait: min(try number("wait") ?? 0, 25),
      from: try number("from"))
  }
}
