import FlyingFox
import FlyingSocks
public import Foundation
import Synchronization

/// An HTTP server on loopback that answers with a closure of the test and records all requests.
public final class LoopbackServer: Sendable {
  /// A request that the server received.
  public struct Request: Sendable {
    /// HTTP method, such as GET.
    public let method: String
    /// Path of the URL, without the query.
    public let path: String
    /// Items of the query, with the first value of each name.
    public let query: [String: String]
    /// Header fields, with names in lower case.
    public let headers: [String: String]
    /// Body of the request.
    public let body: Data
  }

  /// An HTTP response.
  public struct Response: Sendable {
    let status: Int
    let headers: [String: String]
    let body: HTTPBodySequence

    init(_ status: Int, headers: [String: String] = [:], body: HTTPBodySequence) {
      self.status = status
      self.headers = headers
      self.body = body
    }

    /// Creates a response with a text body, which is JSON unless `headers` has another `Content-Type`.
    public init(_ status: Int, _ body: String, headers: [String: String] = [:]) {
      let headers = ["Content-Type": "application/json"].merging(headers) { $1 }
      self.init(status, headers: headers, body: HTTPBodySequence(data: Data(body.utf8)))
    }
  }

  /// A function that answers a request.
  public typealias Handler = @Sendable (Request) async throws -> Response

  private let server: HTTPServer
  private let running = Mutex<Task<Void, any Error>?>(nil)
  private let received = Mutex<[Request]>([])
  private let handler: Handler

  /// Creates a server that answers with `handler`, on a free port if `port` is 0.
  public init(port: UInt16 = 0, timeout: TimeInterval = 60, _ handler: @escaping Handler = { _ in Response(404, "") }) throws {
    // Only this address, so that no other machine can reach the server and no firewall asks for a permission.
    server = HTTPServer(address: try .inet(ip4: "127.0.0.1", port: port), timeout: timeout, logger: .disabled)
    self.handler = handler
  }

  /// Requests received so far, in order.
  public var requests: [Request] { received.withLock { $0 } }

  /// Starts listening.
  ///
  /// - Returns: The server's URL with its port.
  public func start() async throws -> URL { try await start(handler) }

  func start(_ handler: @escaping Handler) async throws -> URL {
    await server.appendRoute("*") { [self] in try await answer($0, handler) }
    let task = Task { [server] in try await server.run() }
    running.withLock { $0 = task }
    // Five minutes, because tests run this on machines that are busy with other tests.
    try await server.waitUntilListening(timeout: 300)
    // Port 0 is replaced by the port that the system chose.
    guard case .ip4(_, let port)? = await server.listeningAddress, let url = URL(string: "http://127.0.0.1:\(port)") else {
      throw SocketError.unsupportedAddress
    }
    return url
  }

  /// Waits until the server has stopped.
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
      // A name may occur twice in a query, for which `uniqueKeysWithValues` would trap.
      query: Dictionary(request.query.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first }),
      headers: Dictionary(request.headers.map { ($0.key.rawValue.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first }),
      body: body)
    // Recorded before the handler runs, so that requests with a failing or waiting handler count.
    received.withLock { $0.append(request) }
    let response = try await handler(request)
    var headers = HTTPHeaders()
    for (name, value) in response.headers { headers[HTTPHeader(name)] = value }
    return HTTPResponse(statusCode: HTTPStatusCode(response.status, phrase: "Status"), headers: headers, body: response.body)
  }
}
