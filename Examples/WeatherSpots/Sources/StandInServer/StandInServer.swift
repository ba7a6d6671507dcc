// StandInServer answers like Open-Meteo, from recorded responses dated anew, so that tests and the demo need no network.
// Invariant: it listens on loopback only, and every answer says in the header X-Weather-Recorded that it is recorded.

import FlyingFox
import FlyingSocks
public import Foundation
import RecordedWeather
import Synchronization

/// A server on loopback that speaks Open-Meteo's wire format.
public final class StandInServer: Sendable {
  private let server: HTTPServer
  private let failure: Failure?
  private let forecast: Recording
  private let marine: Recording
  private let running: Mutex<Task<Void, any Error>?> = Mutex(nil)
  private let requests = Mutex(0)

  /// Makes a server; port 0 takes a free one.
  public init(port: UInt16 = 0, failure: Failure? = nil) throws {
    server = HTTPServer(address: try .inet(ip4: "127.0.0.1", port: port), timeout: 60, logger: .disabled)
    self.failure = failure
    forecast = try Recording.forecast()
    marine = try Recording.marine()
  }

  /// How many requests were answered.
  public var requestCount: Int { requests.withLock { $0 } }

  /// Starts listening.
  ///
  /// - Returns: The URL to give to `--api`.
  public func start() async throws -> URL {
    await server.appendRoute("GET /v1/forecast") { [self] in try await answer($0, forecast) }
    await server.appendRoute("GET /v1/marine") { [self] in try await answer($0, marine) }
    await server.appendRoute("*") { _ in Self.response(404, #"{"error":true,"reason":"Not Found"}"#) }
    let task = Task { [server] in try await server.run() }
    running.withLock { $0 = task }
    try await server.waitUntilListening(timeout: 5)
    guard case .ip4(_, let port)? = await server.listeningAddress, let url = URL(string: "http://127.0.0.1:\(port)") else {
      throw SocketError.unsupportedAddress
    }
    return url
  }

  /// Waits until the server ends.
  public func wait() async throws { try await running.withLock { $0 }?.value }

  /// Stops listening at once.
  public func stop() async {
    await server.stop()
    running.withLock { $0 }?.cancel()
  }

  private func answer(_ request: HTTPRequest, _ recording: Recording) async throws -> HTTPResponse {
    requests.withLock { $0 += 1 }
    let query = Dictionary(request.query.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    guard let failure, failure.applies(to: request.path) else { return Self.response(recording.answer(query, at: Date())) }
    return try await failure.response { Self.response(recording.answer(query, at: Date())) }
  }

  private static func response(_ answer: (status: Int, body: String)) -> HTTPResponse { response(answer.status, answer.body) }

  static func response(_ status: Int, _ body: String, type: String = "application/json; charset=utf-8") -> HTTPResponse {
    HTTPResponse(
      statusCode: HTTPStatusCode(status, phrase: status == 200 ? "OK" : "Error"),
      headers: [.contentType: type, HTTPHeader("X-Weather-Recorded"): "recorded by others, dated anew; see ATTRIBUTION.md"],
      body: Data(body.utf8))
  }
}
