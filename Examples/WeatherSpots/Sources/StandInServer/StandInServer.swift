// StandInServer answers like Open-Meteo, from recorded responses dated anew, so that tests and the demo need no network.
// Invariant: it listens on loopback only, and every answer says in the header X-Weather-Recorded that it is recorded.

public import Foundation
import RecordedWeather
import Synchronization

/// A server on loopback that speaks Open-Meteo's wire format.
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

  /// Makes a server; port 0 takes a free one.
  public init(port: UInt16 = 0, failure: Failure? = nil, now: @escaping @Sendable () -> Date = { Date() }) throws {
    self.now = now
    server = try LoopbackServer(port: port)
    forecast = try Recording.forecast()
    marine = try Recording.marine()
    state = Mutex(State(failure: failure))
  }

  /// The number of requests.
  public var requestCount: Int { server.requests.count }

  /// Returns how many requests came in for a path such as `/v1/forecast`.
  public func requestCount(_ path: String) -> Int { server.requests.count { $0.path == path } }

  /// The greatest number of requests at the same time.
  public var mostInFlight: Int { state.withLock { $0.mostInFlight } }

  /// Fails from now on, or stops failing.
  public func fail(_ failure: Failure?) { state.withLock { $0.failure = failure } }

  /// Starts listening.
  ///
  /// - Returns: The URL to give to `--api`.
  public func start() async throws -> URL { try await server.start { [self] in try await answer($0) } }

  /// Waits until the server ends.
  public func wait() async throws { try await server.wait() }

  /// Stops listening at once.
  public func stop() async { await server.stop() }

  private func answer(_ request: LoopbackServer.Request) async throws -> LoopbackServer.Response {
    let failure = state.withLock { state in
      state.inFlight += 1
      state.mostInFlight = max(state.mostInFlight, state.inFlight)
      return state.failure
    }
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
    .init(
      status, body, headers: ["Content-Type": type, "X-Weather-Recorded": "recorded by others, dated anew; see ATTRIBUTION.md"])
  }
}
