import BoundedHTTP
import Larder
package import Logging
import ServiceLifecycle
package import WeatherSpotsKit

// WeatherSpotsWeb is the page of weather-spots, and the server that it is asked from. Invariant: what the page needs comes from this
// server, and what this server says comes from the store. Called by the command `serve`.

/// The server of the page: a store's spots and their weather for browsers.
package struct WebServer: Service {
  private let server: BoundedServer<WebResponder>

  /// Makes a server.
  ///
  /// - Parameters:
  ///   - storage: The store, which stays open.
  ///   - onReady: Is called with the port when the server takes requests.
  package init(
    _ storage: SpotStore, _ weather: WeatherService, photos: PhotoFiles, options: WebOptions, logger: Logger,
    onReady: @escaping @Sendable (_ port: Int) -> Void
  ) {
    var limits = ServerBounds.Limits()
    // A spot has some kilobytes at most.
    (limits.bodyBytes, limits.connections, limits.bytesHeld) = (64 << 10, 2_000, 128 << 20)
    let (bounds, metrics) = (ServerBounds(limits), RequestMetrics(prefix: "weather_spots"))
    let log = AnswerLog(metrics: metrics, logger: logger)
    let responder = WebResponder(
      storage: storage, weather: weather, photos: photos, options: options, gate: RequestGate(options), bounds: bounds,
      metrics: metrics, log: log, streams: StreamCount(most: options.streams))
    server = BoundedServer(
      name: "weather-spots", host: options.host, port: options.port, bounds: bounds, paths: WebPaths(), log: log, logger: logger,
      responder: responder, onReady: onReady)
  }

  /// Answers requests until the shutdown of its service group.
  package func run() async throws { try await server.run() }
}
