import BoundedHTTP
import Larder
package import Logging
import ServiceLifecycle
package import WeatherSpotsKit

// WeatherSpotsWeb is the page of weather-spots and its server. Invariant: the page loads everything from this server, and the server
// answers from the store. Called by the command `serve`.

/// Server of the page, which shows the spots of a store and their weather in browsers.
package struct WebServer: Service {
  private let server: BoundedServer<WebResponder>

  /// Creates a server without starting it.
  ///
  /// - Parameters:
  ///   - storage: The store, which the server does not close.
  ///   - onReady: Called with the port as soon as the server accepts requests.
  package init(
    _ storage: SpotStore, _ weather: WeatherService, photos: PhotoFiles, options: WebOptions, logger: Logger,
    onReady: @escaping @Sendable (_ port: Int) -> Void
  ) {
    var limits = ServerBounds.Limits()
    // A spot has some kilobytes at most, so 64 KiB hold any body that can be stored.
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

  /// Answers requests until the graceful shutdown of its service group.
  package func run() async throws { try await server.run() }
}
