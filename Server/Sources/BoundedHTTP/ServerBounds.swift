public import Foundation
public import Hummingbird
internal import Larder
public import LarderSync

// BoundedHTTP/ is HTTP/1.1 over Hummingbird with bounds for what clients may hold: connections, bytes, time. Invariant: no client keeps
// memory or a connection by being slow or by lying about sizes. Called by LarderServer, and by programs that answer requests of their own.

/// The bounds that all connections of a server keep together, and the reading of bodies within them.
public struct ServerBounds: Sendable {
  /// The limits of a server.
  public struct Limits: Sendable {
    /// The size in bytes of a body, and of what it unpacks to.
    public var bodyBytes = 4 << 20
    /// The number of open connections; one more is closed at once.
    public var connections = 20_000
    /// The bytes of requests and answers that are held at once for all clients.
    public var bytesHeld = 256 << 20
    /// The size in bytes of all fields of a request together; one field may have half of that.
    public var headBytes = 32 << 10
    /// The time in seconds within which the head of a connection's first request must be there.
    public var headSeconds = 10
    /// The time in seconds within which a client must take what is sent to it, or 64 KiB of that, for which it gets the time again.
    public var answerSeconds = 60
    /// The time in seconds within which the body of a request must come, or 64 KiB of it, for which it gets the time again.
    public var bodySeconds = 30
    /// The time in seconds after which a connection without requests is closed.
    public var idleSeconds = 75

    /// Makes the defaults.
    public init() {}
  }

  /// The limits.
  public let limits: Limits
  package let budget: ByteBudget
  package let connections: ConnectionCount
  package let large = LargeWork()

  /// Makes the bounds of one server.
  public init(_ limits: Limits = Limits()) {
    self.limits = limits
    (budget, connections) = (ByteBudget(limits.bytesHeld), ConnectionCount(most: limits.connections))
  }

  /// The number of open connections.
  public var connectionCount: Int { connections.count }

  /// The bytes of requests and answers that wait.
  public var bytesHeld: Int { budget.bytes }

  /// Returns the body of a request, unpacked where it is in gzip.
  ///
  /// - Throws: `.tooLarge`; `.refused` with 408 for a body that comes too slowly, and with 415 for an encoding that is not known;
  ///   `.unavailable` where as much is held as may be; `.malformed` for one that ends early.
  public func body(of request: Request) async throws(SyncProblem) -> Data {
    let form = RequestContents.Form { (body: Data) throws(SyncProblem) in body }
    return try await RequestContents.read(request, limits, budget.share(of: nil), large, as: form) { (body) async throws(SyncProblem) in
      body
    }
  }

  /// Runs what takes milliseconds of a processor, such as packing a large answer, on a thread that is not one of Swift's tasks'.
  ///
  /// - Throws: What the work throws.
  public func work<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await large.run(nil) { Result { try work() } }.get()
  }
}
