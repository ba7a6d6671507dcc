/// A failure that the stand-in server simulates.
public struct Failure: Sendable {
  /// A kind of failure.
  public enum Kind: Sendable {
    /// An error status with the service's JSON error body.
    case status(Int)
    /// An HTML page with status 502, as a proxy in front of the service sends it.
    case html
    /// The first half of an answer, cut inside the JSON.
    case truncated
    /// The service's JSON error body with status 200.
    case errorWithoutStatus
    /// A given body with status 200.
    case body(String)
    /// A complete answer after a delay.
    case delay(Duration)
  }

  private let kind: Kind
  private let path: String?
  private let latitude: String?

  /// Creates a failure.
  ///
  /// - Parameters:
  ///   - kind: The kind of failure.
  ///   - path: "forecast", "marine" or "search", or `nil` for all paths.
  ///   - latitude: Prefix of a latitude, to fail only for requests with a matching place among theirs, or `nil` for all places.
  public init(_ kind: Kind, path: String? = nil, latitude: String? = nil) {
    self.kind = kind
    self.path = path
    self.latitude = latitude
  }

  func applies(to path: String, _ query: [String: String]) -> Bool {
    // With the slash, so that a path that only ends in the same letters does not match.
    (self.path.map { path.hasSuffix("/\($0)") } ?? true) && asks(query)
  }

  private func asks(_ query: [String: String]) -> Bool {
    guard let latitude else { return true }
    // One place that fails makes the whole request fail, as at the service.
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
      // Before the answer is made, so that its times are those of its sending.
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
