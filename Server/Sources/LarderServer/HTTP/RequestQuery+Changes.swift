internal import BoundedHTTP
@_spi(Wire) internal import LarderWire

extension RequestQuery {
  /// Maximum number of changes in a page, not counting those of its last commit.
  static let mostChanges = 5_000
  /// Maximum number of changes in a page if the request names no limit.
  static let usualLimit = 1_000

  /// Parses the parameters of a request for changes.
  ///
  /// - Parameter longestWait: Maximum number of seconds that a long poll waits, even if the request says more.
  ///
  /// - Throws: A problem of status 400.
  func changesRequest(longestWait: Int) throws(HTTPProblem) -> SyncChangesRequest {
    let collections = try texts("collections")
    let (device, history) = (try text("device") ?? "", try text("history"))
    do throws(SyncProblem) {
      for name in collections { try WireField.collection.check(name) }
      // A request without a device gets a page without the outcomes of a push.
      if !device.isEmpty { try WireField.device.check(device) }
      if let history { try WireField.history.check(history) }
    } catch { throw HTTPProblem(error) }
    var request = SyncChangesRequest(
      device: device, history: history, since: try number("since") ?? 0,
      // At least 1: with a limit of 0, a device would get empty pages for ever.
      limit: min(max(try number("limit") ?? Self.usualLimit, 1), Self.mostChanges),
      collections: collections, wait: min(try number("wait") ?? 0, longestWait),
      from: try number("from"))
    request.pending = try number("pending")
    return request
  }

  /// Returns the app version in the request, cut to the length that is stored, or `nil` if the request names none.
  ///
  /// - Throws: A problem of status 400.
  func appVersion() throws(HTTPProblem) -> String? {
    guard let text = try text("app").map(WireField.app.cut), !text.isEmpty else { return nil }
    return text
  }
}
