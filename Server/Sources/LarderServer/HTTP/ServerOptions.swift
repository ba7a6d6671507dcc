internal import BoundedHTTP

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
  /// The number of devices that an identity may use as much as one may be used: together its devices get so many times the rate of one.
  public var devicesAtOnce = 10
  /// The number of event streams and long polls.
  public var streams = 10_000
  /// The number of event streams and long polls of one identity; `nil` for a quarter of ``streams``.
  ///
  /// A server without tokens does not count them by identity.
  public var streamsPerIdentity: Int?
  /// The time in seconds that a question for changes waits for some, at most.
  public var waitSeconds = 25
  /// The number of scopes that an identity may have devices in.
  public var scopesPerIdentity = 1_000
  /// The number of devices that an identity may have, counted once for each scope.
  public var devicesPerIdentity = 10_000
  /// The number of stored records and tombstones that the devices of an identity were the last to write.
  public var recordsPerIdentity = 1_000_000
  /// The bytes of the names and values of these records.
  public var bytesPerIdentity = 1 << 30
  /// The number of open connections; one more is closed at once.
  public var connections = 20_000
  /// The bytes of requests and answers that are held at once for all clients; who asks for more is told to come again.
  public var bytesHeld = 256 << 20
  /// The time in seconds within which the head of a connection's first request must be there.
  public var headSeconds = 10
  /// The time in seconds within which a client must take what is sent to it, or 64 KiB of that, for which it gets the time again.
  public var answerSeconds = 60
  /// The time in seconds within which the body of a request must come, or 64 KiB of it, for which it gets the time again.
  public var bodySeconds = 30
  /// The time in seconds after which a connection without requests is closed.
  public var idleSeconds = 75
  /// The time in seconds, from a signal, in which requests are still taken while `/readyz` refuses, so that whoever asks it goes elsewhere.
  public var drainSeconds = 0
  /// The time in seconds that streams and requests have to end after that.
  public var shutdownSeconds = 10
  /// The time in milliseconds after an event within which commits become one event.
  public var coalescingMilliseconds = 20

  /// Makes the defaults.
  public init() {}

  /// The number of event streams and long polls that one identity has at most.
  var mostStreamsPerIdentity: Int { streamsPerIdentity ?? max(1, streams / 4) }

  /// The limits of what an identity may store.
  var quota: IdentityQuota {
    IdentityQuota(scopes: scopesPerIdentity, devices: devicesPerIdentity, records: recordsPerIdentity, bytes: bytesPerIdentity)
  }

  /// The limits of connections and bodies.
  var bounds: ServerBounds.Limits {
    var limits = ServerBounds.Limits()
    (limits.bodyBytes, limits.connections, limits.bytesHeld) = (bodyBytes, connections, bytesHeld)
    (limits.headSeconds, limits.answerSeconds, limits.bodySeconds, limits.idleSeconds) = (
      headSeconds, answerSeconds, bodySeconds, idleSeconds
    )
    return limits
  }
}
