internal import BoundedHTTP
@_spi(Wire) internal import LarderSync

extension RequestQuery {
  /// The most changes of a page, but for those of its last commit.
  static let mostChanges = 5_000
  /// The number of changes of a page that names none.
  static let usualLimit = 1_000

  /// Returns the question for changes that the parameters are.
  ///
  /// - Parameter longestWait: The seconds that a question waits at most, whatever it asks for.
  ///
  /// - Throws: `.malformed`.
  func changesRequest(longestWait: Int) throws(SyncProblem) -> SyncChangesRequest {
    let collections = try texts("collections")
    for name in collections { try WireField.collection.check(name) }
    let (device, history) = (try text("device") ?? "", try text("history"))
    if !device.isEmpty { try WireField.device.check(device) }
    if let history { try WireField.history.check(history) }
    var request = SyncChangesRequest(
      device: device, history: history, since: try number("since") ?? 0,
      limit: min(max(try number("limit") ?? Self.usualLimit, 1), Self.mostChanges),
      collections: collections, wait: min(try number("wait") ?? 0, longestWait),
      from: try number("from"))
    request.pending = try number("pending")
    return request
  }

  /// Returns the version of the app that asks, cut to the length that is stored.
  ///
  /// `nil` where the request names none.
  ///
  /// - Throws: `.malformed`.
  func appVersion() throws(SyncProblem) -> String? {
    guard let text = try text("app").map(WireField.app.cut), !text.isEmpty else { return nil }
    return text
  }
}
