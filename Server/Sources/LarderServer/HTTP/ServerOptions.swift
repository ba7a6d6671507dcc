// HTTP/ is the wire over Hummingbird: routes, limits, answers. Invariant: every answer that is no success is a problem in JSON, and no log
// has a token or a value. Called by the command, and by apps that run the server in their own process.

/// The limits of a server.
public struct ServerOptions: Sendable {
  /// The address to listen at.
  public var host = "127.0.0.1"
  /// The port to listen at; 0 for any.
  public var port = 8_080
  /// The size in bytes of a request, and of what it unpacks to.
  public var bodyBytes = 4 << 20
  /// The number of records of a push.
  public var recordsPerPush = 500
  /// The requests per second that a device may make for long.
  public var requestsPerSecond = 100.0
  /// The requests that a device may make at once.
  public var burst = 1_000.0
  /// The number of event streams and long polls.
  public var streams = 10_000
  /// The number of scopes that an identity may have devices in.
  public var scopesPerIdentity = 1_000
  /// The time in seconds within which the body of a request must be there.
  public var bodySeconds = 30
  /// The time in seconds after which a connection without requests is closed.
  public var idleSeconds = 75
  /// The time in seconds that streams and requests have to end after a signal.
  public var shutdownSeconds = 10
  /// The time in milliseconds after an event within which commits become one event.
  public var coalescingMilliseconds = 20

  /// Makes the defaults.
  public init() {}
}
