import Foundation
package import Larder
import WeatherSpotsKit

/// The settings of the page's server.
package struct WebOptions: Sendable {
  /// The address to listen at.
  package var host = "127.0.0.1"
  /// The port to listen at; 0 for any.
  package var port = 8_080
  /// Further names by which browsers may ask.
  package var names: [String] = []
  /// The word that requests must come with; `nil` for none.
  package var token: String?
  /// The number of event streams that are open at a time.
  package var streams = 512
  /// The policy of forecasts that are asked for without waiting.
  package var policy = FetchPolicy.staleWhileRevalidate
  /// The policy of forecasts that are waited for.
  package var waitingPolicy = FetchPolicy.cacheFirst
  /// The time after an event of a stream within which all changes of spots become one event.
  package var gathering = Duration.milliseconds(150)
  /// The time between two signs of life of a stream.
  package var beat = Duration.seconds(15)

  /// Makes the defaults.
  package init() {}

  /// Returns a token that nobody can guess: 32 bytes of the system's random numbers.
  package static func newToken() -> String {
    var system = SystemRandomNumberGenerator()
    return Data((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &system) }).base64URL
  }

  /// Returns whether what listens at an address is reached from this machine alone.
  package static func isLoopback(_ host: String) -> Bool {
    host.lowercased() == "localhost" || host == "::1" || host == "[::1]" || host.wholeMatch(of: /127(\.\d{1,3}){3}/) != nil
  }
}
