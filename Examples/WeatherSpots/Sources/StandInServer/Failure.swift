/// A failure that the stand-in server shows on purpose.
public struct Failure: Sendable {
  /// A kind of failure.
  public enum Kind: Sendable {
    /// An error status with the service's error body.
    case status(Int)
    /// A page of HTML, as a proxy in front of the service would send.
    case html
    /// The first half of an answer.
    case truncated
    /// The service's error body with the status of success.
    case errorWithoutStatus
    /// A body that is not of the recordings.
    case body(String)
    /// A whole answer, late.
    case delay(Duration)
  }

  private let kind: Kind
  private let path: String?
  private let latitude: String?

  /// Makes a failure.
  ///
  /// - Parameters:
  ///   - kind: What happens.
  ///   - path: "forecast", "marine" or "search"; all if not given.
  ///   - latitude: How an asked latitude begins, for a failure of one place, and of a request for several with that one among them.
  public init(_ kind: Kind, path: String? = nil, latitude: String? = nil) {
    self.kind = kind
    self.path = path
    self.latitude = latitude
  }

  func applies(to path: String, _ query: [String: String]) -> Bool {
    (self.path.map { path.hasSuffix("/\($0)") } ?? true) && asks(query)
  }

  private func asks(_ query: [String: String]) -> Bool {
    guard let latitude else { return true }
    return (query["latitude"] ?? "").split(separator: ",").contains { $0.hasPrefix(latitude) }
  }

  func answer(instead whole: () -> (status: Int, body: String)) async throws -> LoopbackServer.Response {
    switch kind {
    case .status(let status): return StandInServer.response(status, Self.body(status))
    case .html: return StandInServer.response(502, "<html><body><h1>502 Bad Gateway</h1></body></html>", type: "text/html")
    case .truncated:
      let bytes = whole().body.utf8
      return StandInServer.response(200, String(decoding: bytes.prefix(bytes.count / 2), as: UTF8.self))
    case .errorWithoutStatus: return StandInServer.response(200, Self.body(500))
    case .body(let body): return StandInServer.response(200, body)
    case .delay(let delay):
      try await Task.sleep(for: delay)
      let answer = whole()
      return StandInServer.response(answer.status, answer.body)
    }
  }

  private static func body(_ status: Int) -> String {
    let reason =
      switch status {
      case 400: "No data is available for this location"
      case 429: "Minutely API request limit exceeded. Please try again in one minute."
      case 503: "The service is overloaded"
      default: "Something went wrong."
      }
    return #"{"error":true,"reason":"\#(reason)"}"#
  }
}
