import Foundation
package import Larder
import WeatherSpotsKit

/// Settings of the server of the page.
package struct WebOptions: Sendable {
  /// Address at which the server listens.
  package var host = "127.0.0.1"
  /// Port at which the server listens.
  ///
  /// With 0 the system chooses one.
  package var port = 8_080
  /// Further host names that requests may have.
  ///
  /// The loopback names and `host` are always accepted.
  package var names: [String] = []
  /// Token that requests must have, or `nil` if they need none.
  package var token: String?
  /// Maximum number of event streams that are open at a time.
  package var streams = 512
  /// Fetch policy of requests for a forecast without `wait=true`.
  package var policy = FetchPolicy.staleWhileRevalidate
  /// Fetch policy of requests with `wait=true`.
  package var waitingPolicy = FetchPolicy.cacheFirst
  /// Time after an event of a stream within which all changes of spots become one event.
  package var gathering = Duration.milliseconds(150)
  /// Time between two keep-alive messages of a stream.
  package var beat = Duration.seconds(15)

  /// Creates the default settings.
  package init() {}

  /// Returns a new token of 32 bytes from the system's random numbers, in base64url.
  package static func newToken() -> String {
    var system = SystemRandomNumberGenerator()
    return Data((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &system) }).base64URL
  }

  /// Returns whether a server that listens at an address can be reached from this machine only.
  package static func isLoopback(_ host: String) -> Bool {
    // All of 127.0.0.0/8 is loopback (RFC 1122, 3.2.1.3). A wrong "yes" here would serve a network without a token.
    host.lowercased() == "localhost" || host == "::1" || host == "[::1]" || host.wholeMatch(of: /127(\.\d{1,3}){3}/) != nil
  }
}
