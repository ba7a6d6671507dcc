import FlyingFox
import FlyingSocks
public import Foundation
import Synchronization

/// A server on loopback whose answers a test writes.
public final class LoopbackServer: Sendable {
  /// A request as it came in.
  public struct Request: Sendable {
    /// The method, such as GET.
    public let method: String
    /// The path, without the query.
    public let path: String
    /// The query's items; the first of each name.
    public let query: [String: String]
    /// The header fields, with names in small letters.
    public let headers: [String: String]
    /// The body.
    public let body: Data
  }

  /// An answer.
  public struct Response: Sendable {
    let status: Int
    let headers: [String: String]
    let body: HTTPBodySequence

    init(_ status: Int, headers: [String: String] = [:], body: HTTPBodySequence) {
      self.status = status
      self.headers = headers
      self.body = body
    }

    /// Makes an answer; JSON unless the header fields say otherwise.
    public init(_ status: Int, _ body: String, headers: [String: String] = [:]) {
      let headers = ["Content-Type": "application/json"].merging(headers) { $1 }
      self.init(status, headers: headers, body: HTTPBodySequence(data: Data(body.utf8)))
    }
  }

  /// Answers a request.
  public typealias Handler = @Sendable (Request) async throws -> Response

  private let server: HTTPServer
  private let running = Mutex<Task<Void, any Error>?>(nil)
  private let received = Mutex<[Request]>([])
  private let handler: Handler

  /// Makes a server.
  public init(_ handler: @escaping Handler) throws {
    server = try Self.server()
    self.handler = handler
  }

  /// Makes a server whose answers ``start(_:)`` is given; port 0 takes a free one.
  init(port: UInt16, timeout: TimeInterval = 60) throws {
    server = try Self.server(port: port, timeout: timeout)
    handler = { _ in Response(404, "") }
  }

  private static func server(port: UInt16 = 0, timeout: TimeInterval = 60) throws -> HTTPServer {
    HTTPServer(address: try .inet(ip4: "127.0.0.1", port: port), timeout: timeout, logger: .disabled)
  }

  /// The requests, in order.
  public var requests: [Request] { received.withLock { $0 } }

  /// Starts listening.
  ///
  /// - Returns: Its URL.
  public func start() async throws -> URL { try await start(handler) }

  func start(_ handler: @escaping Handler) async throws -> URL {
    await server.appendRoute("*") { [self] in try await answer($0, handler) }
    let task = Task { [server] in try await server.run() }
    running.withLock { $0 = task }
    try await server.waitUntilListening(timeout: 300)
    guard case .ip4(_, let port)? = await server.listeningAddress, let url = URL(string: "http://127.0.0.1:\(port)") else {
      throw SocketError.unsupportedAddress
    }
    return url
  }

  /// Waits until the server ends.
  public func wait() async throws { try await running.withLock { $0 }?.value }

  /// Stops listening at once.
  public func stop() async {
    await server.stop()
    running.withLock { $0 }?.cancel()
  }

  private func answer(_ request: HTTPRequest, _ handler: Handler) async throws -> HTTPResponse {
    let body = try await request.bodyData
    let request = Request(
      method: request.method.rawValue, path: request.path,
      query: Dictionary(request.query.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first }),
      headers: Dictionary(request.headers.map { ($0.key.rawValue.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first }),
      body: body)
    received.withLock { $0.append(request) }
    let response = try await handler(request)
    var headers = HTTPHeaders()
    for (name, value) in response.headers { headers[HTTPHeader(name)] = value }
    return HTTPResponse(statusCode: HTTPStatusCode(response.status, phrase: "Status"), headers: headers, body: response.body)
  }
}
