import FlyingFox
import FlyingSocks
public import Foundation
import Synchronization

/// A server of pictures on loopback, which also fails in every way that a server can.
public final class PictureServer: Sendable {
  /// The answer for a path.
  public enum Answer: Sendable {
    /// A whole body.
    case whole(Data)
    /// An error status, with a page of HTML.
    case status(Int)
    /// A redirection to a path or a URL.
    case redirect(String)
    /// Fewer bytes than were announced.
    case truncated(Data, of: Int)
    /// The same bytes again and again, as many as were announced, or without end.
    case endless(Data, announced: Int?)
    /// Nothing before ``PictureServer/release()``.
    case held(Data)
    /// The first half, and the rest after ``PictureServer/release()``.
    case stalled(Data)
  }

  /// The activity of the server.
  public struct Events: Sendable {
    /// The paths that were asked for, in order.
    public var requests: [String] = []
    /// The most requests that were being answered at a time.
    public var mostAtOnce = 0
    /// The number of pieces of endless bodies that clients took.
    public var piecesSent = 0
    /// The number of endless bodies that ended because the client left.
    public var bodiesEnded = 0
    fileprivate var open = 0
  }

  /// The activity of the server, to look at or to wait for.
  public let events = AwaitableState(Events())
  private let server: LoopbackServer
  private let answers: [String: Answer]
  private let isReleased = AwaitableState(false)

  /// Makes a server for these paths; others are answered with 404.
  public init(_ answers: [String: Answer], port: UInt16 = 0) throws {
    self.answers = answers
    server = try LoopbackServer(port: port, timeout: 600)
  }

  /// The paths that were asked for, in order.
  public var requests: [String] { events.value.requests }

  /// Lets what is held go, now and later.
  public func release() { isReleased.update { $0 = true } }

  /// Starts listening, and returns the URL that the paths are under.
  public func start() async throws -> URL { try await server.start { [self] in await answer($0.path) } }

  /// Stops listening at once.
  public func stop() async {
    release()
    await server.stop()
  }

  private func answer(_ path: String) async -> LoopbackServer.Response {
    events.update { events in
      events.requests.append(path)
      events.open += 1
      events.mostAtOnce = max(events.mostAtOnce, events.open)
    }
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

/// A body that is sent piece by piece.
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

    deinit { if body.repeated != nil { body.ended() } }

    func next() async throws -> UInt8? { try await nextBuffer(suggested: 1)?.first }

    func nextBuffer(suggested count: Int) async throws -> Data? {
      if index > 0 { await body.gate?.wait { $0 } }
      defer { index += 1 }
      if index < body.first.count { return body.first[index] }
      // The connection is closed then, which cuts off an answer that has announced more.
      guard let repeated = body.repeated else { throw SocketError.disconnected }
      body.sent()
      return repeated
    }
  }
}
