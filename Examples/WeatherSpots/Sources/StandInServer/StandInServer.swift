// StandInServer answers like Open-Meteo, from recorded responses dated anew, so that tests and the demo need no network.
// Invariant: it listens on loopback only, and every answer says in the header X-Weather-Recorded that it is recorded.

import FlyingFox
import FlyingSocks
public import Foundation
import RecordedWeather
import Synchronization

/// A server on loopback that speaks Open-Meteo's wire format.
public final class StandInServer: Sendable {
  private struct State {
    var running: Task<Void, any Error>?
    var failure: Failure?
    var requests: [String] = []
    var inFlight = 0
    var mostInFlight = 0
  }

  private let server: HTTPServer
  private let forecast: Recording
  private let marine: Recording
  private let state: Mutex<State>
  private let now: @Sendable () -> Date

  /// Makes a server; port 0 takes a free one.
  public init(port: UInt16 = 0, failure: Failure? = nil, now: @escaping @Sendable () -> Date = { Date() }) throws {
    self.now = now
    server = HTTPServer(address: try .inet(ip4: "127.0.0.1", port: port), timeout: 60, logger: .disabled)
    forecast = try Recording.forecast()
    marine = try Recording.marine()
    state = Mutex(State(failure: failure))
  }

  /// The number of requests.
  public var requestCount: Int { state.withLock { $0.requests.count } }

  /// Returns how many requests came in for a path such as `/v1/forecast`.
  public func requestCount(_ path: String) -> Int { state.withLock { $0.requests.count { $0 == path } } }

  /// The greatest number of requests at the same time.
  public var mostInFlight: Int { state.withLock { $0.mostInFlight } }

  /// Fails from now on, or stops failing.
  public func fail(_ failure: Failure?) { state.withLock { $0.failure = failure } }

  /// Starts listening.
  ///
  /// - Returns: The URL to give to `--api`.
  public func start() async throws -> URL {
    await server.appendRoute("GET /v1/forecast") { [self] in try await answer($0) { [forecast, now] in forecast.answer($0, at: now()) } }
    await server.appendRoute("GET /v1/marine") { [self] in try await answer($0) { [marine, now] in marine.answer($0, at: now()) } }
    await server.appendRoute("GET /v1/search") { [self] in try await answer($0) { RecordedPlaces.answer($0) } }
    await server.appendRoute("*") { _ in Self.response(404, #"{"error":true,"reason":"Not Found"}"#) }
    let task = Task { [server] in try await server.run() }
    state.withLock { $0.running = task }
    try await server.waitUntilListening(timeout: 300)
    guard case .ip4(_, let port)? = await server.listeningAddress, let url = URL(string: "http://127.0.0.1:\(port)") else {
      throw SocketError.unsupportedAddress
    }
    return url
  }

  /// Waits until the server ends.
  public func wait() async throws { try await state.withLock { $0.running }?.value }

  /// Stops listening at once.
  public func stop() async {
    await server.stop()
    state.withLock { $0.running }?.cancel()
  }

  private func answer(
    _ request: HTTPRequest, _ recorded: ([String: String]) -> (status: Int, body: String)
  ) async throws -> HTTPResponse {
    let failure = state.withLock { state in
      state.requests.append(request.path)
      state.inFlight += 1
      state.mostInFlight = max(state.mostInFlight, state.inFlight)
      return state.failure
    }
    defer { state.withLock { $0.inFlight -= 1 } }
    let query = Dictionary(request.query.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    guard let failure, failure.applies(to: request.path, query) else { return Self.response(recorded(query)) }
    return try await failure.response { Self.response(recorded(query)) }
  }

  private static func response(_ answer: (status: Int, body: String)) -> HTTPResponse { response(answer.status, answer.body) }

  static func response(_ status: Int, _ body: String, type: String = "application/json; charset=utf-8") -> HTTPResponse {
    HTTPResponse(
      statusCode: HTTPStatusCode(status, phrase: status == 200 ? "OK" : "Error"),
      headers: [.contentType: type, HTTPHeader("X-Weather-Recorded"): "recorded by others, dated anew; see ATTRIBUTION.md"],
      body: Data(body.utf8))
  }
}
