public import Foundation
public import Hummingbird

// BoundedHTTP/ is HTTP/1.1 over Hummingbird with limits on the connections, bytes and time of clients. Invariant: no client keeps memory
// or a connection by being slow or by announcing false sizes. Called by LarderServer, and by servers with routes of their own.

/// Limits that all connections of a server share, and the reading of bodies within them.
///
/// Create one for each server, pass it to ``BoundedServer``, and read bodies with ``body(of:)``.
public struct ServerBounds: Sendable {
  /// Limits of a server.
  public struct Limits: Sendable {
    /// Maximum size in bytes of a body, as sent and after decompression.
    public var bodyBytes = 4 << 20
    /// Maximum number of open connections.
    ///
    /// One more is closed at once.
    public var connections = 20_000
    /// Maximum number of bytes of requests and answers that are held at once for all clients.
    public var bytesHeld = 256 << 20
    /// Maximum size in bytes of all header fields of a request together.
    ///
    /// One field may have half of that.
    public var headBytes = 32 << 10
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

    /// Creates the default limits.
    public init() {}
  }

  /// Limits that the server enforces.
  public let limits: Limits
  package let budget: ByteBudget
  package let connections: ConnectionCount
  package let large = LargeWork()

  /// Creates the bounds of one server.
  public init(_ limits: Limits = Limits()) {
    self.limits = limits
    (budget, connections) = (ByteBudget(limits.bytesHeld), ConnectionCount(most: limits.connections))
  }

  /// Number of open connections.
  public var connectionCount: Int { connections.count }

  /// Number of bytes of requests and answers that are held.
  public var bytesHeld: Int { budget.bytes }

  /// Returns the body of a request, decompressed if it is gzip.
  ///
  /// - Throws: A problem of status 413 for a body beyond the limit, 408 for one that arrives too slowly, 415 for an unknown encoding, 400
  ///   for a body that ends early, and 503 when as many bytes are held as allowed.
  public func body(of request: Request) async throws(HTTPProblem) -> Data {
    let form = RequestContents.Form { (body: Data) throws(HTTPProblem) in body }
    return try await RequestContents.read(request, limits, budget.share(of: nil), large, as: form) { (body) async throws(HTTPProblem) in
      body
    }
  }

  /// Runs work that needs a processor for milliseconds, such as compressing a large answer, on a thread outside of Swift's task pool.
  ///
  /// - Throws: The error of the work.
  public func work<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await large.run(nil) { Result { try work() } }.get()
  }
}
