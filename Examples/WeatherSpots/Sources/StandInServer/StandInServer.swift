// StandInServer answers like Open-Meteo, from recorded responses with new dates, so that tests and the demo need no network.
// Invariant: it listens on loopback only, and every answer is marked as recorded by the header X-Weather-Recorded.

public import Foundation
import RecordedWeather
import Synchronization

/// An HTTP server on loopback that answers from recordings in Open-Meteo's wire format.
public final class StandInServer: Sendable {
  private struct State {
    var failure: Failure?
    var inFlight = 0
    var mostInFlight = 0
  }

  private let server: LoopbackServer
  private let forecast: Recording
  private let marine: Recording
  private let state: Mutex<State>
  private let now: @Sendable () -> Date

  /// Creates a server, on a free port if `port` is 0.
  public init(port: UInt16 = 0, failure: Failure? = nil, now: @escaping @Sendable () -> Date = { Date() }) throws {
    self.now = now
    server = try LoopbackServer(port: port)
    forecast = try Recording.forecast()
    marine = try Recording.marine()
    state = Mutex(State(failure: failure))
  }

  /// Number of requests received so far.
  public var requestCount: Int { server.requests.count }

  /// Returns the number of requests for a path such as `/v1/forecast`.
  public func requestCount(_ path: String) -> Int { server.requests.count { $0.path == path } }

  /// Greatest number of requests in progress at one time.
  public var mostInFlight: Int { state.withLock { $0.mostInFlight } }

  /// Sets the failure for all later requests, or ends it with `nil`.
  public func fail(_ failure: Failure?) { state.withLock { $0.failure = failure } }

  /// Starts listening.
  ///
  /// - Returns: The server's URL, for the option `--api`.
  public func start() async throws -> URL { try await server.start { [self] in try await answer($0) } }

  /// Waits until the server has stopped.
  public func wait() async throws { try await server.wait() }

  /// Stops listening at once.
  public func stop() async { await server.stop() }

  private func answer(_ request: LoopbackServer.Request) async throws -> LoopbackServer.Response {
    // The failure is copied, because the lock must not be held while an answer waits.
    let failure = state.withLock { state in
      state.inFlight += 1
      state.mostInFlight = max(state.mostInFlight, state.inFlight)
      return state.failure
    }
    // In a `defer`, since a simulated failure can throw out of its delay.
    defer { state.withLock { $0.inFlight -= 1 } }
    if let failure, failure.applies(to: request.path, request.query) { return try await failure.answer { recorded(request) } }
    let answer = recorded(request)
    return StandInServer.response(answer.status, answer.body)
  }

  private func recorded(_ request: LoopbackServer.Request) -> (status: Int, body: String) {
    switch request.path {
    case "/v1/forecast": forecast.answer(request.query, at: now())
    case "/v1/marine": marine.answer(request.query, at: now())
    case "/v1/search": RecordedPlaces.answer(request.query)
    default: (404, #"{"error":true,"reason":"Not Found"}"#)
    }
  }

  static func response(
    _ status: Int, _ body: String, type: String = "application/json; charset=utf-8"
  ) -> LoopbackServer.Response {
    .init(status, body, headers: ["Content-Type": type, "X-Weather-Recorded": "recorded by others, dated anew; see ATTRIBUTION.md"])
  }
}
