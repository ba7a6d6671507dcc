internal import BoundedHTTP

// HTTP/ serves the wire protocol over Hummingbird: routes, limits, answers. Invariant: every answer that is no success is a problem in
// JSON, and no log has a token or a value. Called by the command, and by apps that run the server in their own process.

/// Address and limits of a server.
///
/// Create the defaults, change the values that do not fit your app, and pass them to ``SyncServer``.
public struct ServerOptions: Sendable {
  /// Address to listen on.
  public var host = "127.0.0.1"
  /// Port to listen on, or 0 for any free one.
  public var port = 8_080
  /// Maximum size in bytes of a request body, as sent and after decompression.
  public var bodyBytes = 4 << 20
  /// Maximum number of records in a push.
  public var recordsPerPush = 500
  /// Number of requests per second that a device may make on average.
  public var requestsPerSecond = 100.0
  /// Number of requests that a device may make in a burst.
  public var burst = 1_000.0
  /// Number of devices of one identity that can make requests at the full rate at the same time.
  ///
  /// All its devices together may make that many times the requests of one.
  public var devicesAtOnce = 10
  /// Maximum number of event streams and long polls.
  public var streams = 10_000
  /// Maximum number of event streams and long polls of one identity, or `nil` for a quarter of ``streams``.
  ///
  /// A server without tokens does not count them by identity.
  public var streamsPerIdentity: Int?
  /// Maximum time in seconds that a long poll waits for changes.
  public var waitSeconds = 25
  /// Maximum number of scopes in which an identity may have devices.
  public var scopesPerIdentity = 1_000
  /// Maximum number of devices of an identity, counted once for each scope.
  public var devicesPerIdentity = 10_000
  /// Maximum number of stored records and tombstones that the devices of an identity were the last to write.
  public var recordsPerIdentity = 1_000_000
  /// Maximum number of bytes of the names and values of the records that the devices of an identity were the last to write.
  ///
  /// The outcomes of groups that were not accepted count, too, beyond 4 KiB for each device in a scope.
  public var bytesPerIdentity = 1 << 30
  /// Maximum number of open connections.
  ///
  /// One more is closed at once.
  public var connections = 20_000
  /// Maximum number of bytes of requests and answers held at once for all clients.
  ///
  /// Requests beyond it get 503.
  public var bytesHeld = 256 << 20
  /// Time in seconds within which the head of a connection's first request must arrive.
  public var headSeconds = 10
  /// Time in seconds within which a client must take an answer.
  ///
  /// It begins again after each 64 KiB that the client takes.
  public var answerSeconds = 60
  /// Time in seconds within which the body of a request must arrive.
  ///
  /// It begins again after each 64 KiB that arrive.
  public var bodySeconds = 30
  /// Time in seconds after which a connection without requests is closed.
  public var idleSeconds = 75
  /// Time in seconds after a shutdown signal in which requests are still answered.
  ///
  /// `/readyz` refuses meanwhile, so that a load balancer sends its requests elsewhere.
  public var drainSeconds = 0
  /// Time in seconds that streams and requests have to end after ``drainSeconds``.
  public var shutdownSeconds = 10
  /// Time in milliseconds after an event of a stream within which commits become one event.
  public var coalescingMilliseconds = 20

  /// Creates the default options.
  public init() {}

  /// Maximum number of event streams and long polls of one identity.
  ///
  /// At least 1, or a server with fewer than 4 streams would have none for any identity.
  var mostStreamsPerIdentity: Int { streamsPerIdentity ?? max(1, streams / 4) }

  /// Limits on the data that one identity may store.
  var quota: IdentityQuota {
    IdentityQuota(scopes: scopesPerIdentity, devices: devicesPerIdentity, records: recordsPerIdentity, bytes: bytesPerIdentity)
  }

  /// Limits on connections and bodies.
  var bounds: ServerBounds.Limits {
    var limits = ServerBounds.Limits()
    (limits.bodyBytes, limits.connections, limits.bytesHeld) = (bodyBytes, connections, bytesHeld)
    (limits.headSeconds, limits.answerSeconds, limits.bodySeconds, limits.idleSeconds) = (
      headSeconds, answerSeconds, bodySeconds, idleSeconds
    )
    return limits
  }
}
