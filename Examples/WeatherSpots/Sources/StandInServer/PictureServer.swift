import FlyingFox
import FlyingSocks
public import Foundation

/// An HTTP server of pictures on loopback that can also send errors, truncated, endless and delayed bodies.
public final class PictureServer: Sendable {
  /// The server's answer for one path.
  public enum Answer: Sendable {
    /// A complete body.
    case whole(Data)
    /// An error status with an HTML page.
    case status(Int)
    /// A redirect to a path or a URL.
    case redirect(String)
    /// A body that ends before the announced number of bytes.
    case truncated(Data, of: Int)
    /// The same bytes repeated, up to the announced number or without end.
    case endless(Data, announced: Int?)
    /// A complete body, sent only after ``PictureServer/release()``.
    case held(Data)
    /// A body whose second half is sent only after ``PictureServer/release()``.
    case stalled(Data)
  }

  /// Counters of the server's activity.
  public struct Events: Sendable {
    /// Requested paths, in order.
    public var requests: [String] = []
    /// Greatest number of requests in progress at one time.
    public var mostAtOnce = 0
    /// Number of pieces of endless bodies sent to clients.
    public var piecesSent = 0
    /// Number of endless bodies that ended.
    public var bodiesEnded = 0
    fileprivate var open = 0
  }

  /// Activity of the server, to read or to wait on.
  public let events = AwaitableState(Events())
  private let server: LoopbackServer
  private let answers: [String: Answer]
  private let isReleased = AwaitableState(false)

  /// Creates a server for the given paths, which answers other paths with 404.
  public init(_ answers: [String: Answer], port: UInt16 = 0) throws {
    self.answers = answers
    // Ten minutes, so that a held answer is not cut off by the server's own limit.
    server = try LoopbackServer(port: port, timeout: 600)
  }

  /// Requested paths, in order.
  public var requests: [String] { events.value.requests }

  /// Sends all held and stalled bodies, including those requested later.
  public func release() { isReleased.update { $0 = true } }

  /// Starts listening, and returns the base URL of the paths.
  public func start() async throws -> URL { try await server.start { [self] in await answer($0.path) } }

  /// Stops listening at once.
  public func stop() async {
    release()
    // Held answers are released first, or their tasks would wait forever.
    await server.stop()
  }

  private func answer(_ path: String) async -> LoopbackServer.Response {
    events.update { events in
      events.requests.append(path)
      events.open += 1
      events.mostAtOnce = max(events.mostAtOnce, events.open)
    }
    // An endless or stalled body is sent after this function, so `open` counts only answers that are being made.
    defer { events.update { $0.open -= 1 } }
    switch answers[path] {
    case .whole(let data): return .init(200, body: HTTPBodySequence(data: data))
    case .status(let status): return Self.page(status)
    case nil: return Self.page(404)
    case .redirect(let place): return .init(302, headers: ["Location": place], body: HTTPBodySequence(data: Data("elsewhere".utf8)))
    case .truncated(let data, let count): return .init(200, body: body([data], count: count))
    case .endless(let data, let count?): return .init(200, body: body([], repeating: data, count: count))
    case .endless(let data, nil): return .init(200, body: HTTPBodySequence(from: pieces([], repeating: data)))
    case .held(let data):
      await isReleased.wait { $0 }
      return .init(200, body: HTTPBodySequence(data: data))
    case .stalled(let data):
      let half = data.count / 2
      return .init(200, body: body([data.prefix(half), data.dropFirst(half)], pauses: true, count: data.count))
    }
  }

  private static func page(_ status: Int) -> LoopbackServer.Response {
    .init(status, "<html><body><h1>\(status)</h1></body></html>", headers: ["Content-Type": "text/html"])
  }

  private func body(_ first: [Data], repeating: Data? = nil, pauses: Bool = false, count: Int) -> HTTPBodySequence {
    HTTPBodySequence(from: pieces(first, repeating: repeating, pauses: pauses), count: count, suggestedBufferSize: 1 << 16)
  }

  private func pieces(_ first: [Data], repeating: Data? = nil, pauses: Bool = false) -> Pieces {
    let sent: @Sendable () -> Void = { [events] in events.update { $0.piecesSent += 1 } }
    let ended: @Sendable () -> Void = { [events] in events.update { $0.bodiesEnded += 1 } }
    return Pieces(first: first, repeated: repeating, gate: pauses ? isReleased : nil, sent: sent, ended: ended)
  }
}

/// A body that is sent in pieces.
private struct Pieces: AsyncBufferedSequence {
  typealias Element = UInt8
  let first: [Data]
  let repeated: Data?
  let gate: AwaitableState<Bool>?
  let sent: @Sendable () -> Void
  let ended: @Sendable () -> Void

  func makeAsyncIterator() -> Iterator { Iterator(body: self) }

  final class Iterator: AsyncBufferedIteratorProtocol {
    private let body: Pieces
    private var index = 0

    init(body: Pieces) { self.body = body }

    // The only sign that a client has left: the server drops the iterator.
    deinit { if body.repeated != nil { body.ended() } }

    func next() async throws -> UInt8? { try await nextBuffer(suggested: 1)?.first }

    func nextBuffer(suggested count: Int) async throws -> Data? {
      // The first piece is sent at once: a client must have begun to receive when the body stalls.
      if index > 0 { await body.gate?.wait { $0 } }
      defer { index += 1 }
      if index < body.first.count { return body.first[index] }
      // An error closes the connection, so the client receives fewer bytes than announced.
      guard let repeated = body.repeated else { throw SocketError.disconnected }
      body.sent()
      return repeated
    }
  }
}
