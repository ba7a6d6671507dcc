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
    let body: Data

    /// Makes an answer.
    public init(_ status: Int, _ body: String, headers: [String: String] = [:]) {
      self.status = status
      self.headers = headers
      self.body = Data(body.utf8)
    }
  }

  private let server: HTTPServer
  private let running = Mutex<Task<Void, any Error>?>(nil)
  private let received = Mutex<[Request]>([])
  private let handler: @Sendable (Request) async throws -> Response

  /// Makes a server.
  public init(_ handler: @escaping @Sendable (Request) async throws -> Response) throws {
    server = HTTPServer(address: try .inet(ip4: "127.0.0.1", port: 0), timeout: 60, logger: .disabled)
    self.handler = handler
  }

  /// The requests, in order.
  public var requests: [Request] { received.withLock { $0 } }

  /// Starts listening.
  ///
  /// - Returns: Its URL.
  public func start() async throws -> URL {
    await server.appendRoute("*") { [self] in try await answer($0) }
    let task = Task { [server] in try await server.run() }
    running.withLock { $0 = task }
    try await server.waitUntilListening(timeout: 300)
    guard case .ip4(_, let port)? = await server.listeningAddress, let url = URL(string: "http://127.0.0.1:\(port)") else {
      throw SocketError.unsupportedAddress
    }
    return url
  }

  /// Stops listening at once.
  public func stop() async {
    await server.stop()
    running.withLock { $0 }?.cancel()
  }

  private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
    let body = try await request.bodyData
    let request = Request(
      method: request.method.rawValue, path: request.path,
      query: Dictionary(request.query.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first }),
      headers: Dictionary(request.headers.map { ($0.key.rawValue.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first }),
      body: body)
    received.withLock { $0.append(request) }
    let response = try await handler(request)
    var headers: HTTPHeaders = [.contentType: "application/json"]
    for (name, value) in response.headers { headers[HTTPHeader(name)] = value }
    return HTTPResponse(statusCode: HTTPStatusCode(response.status, phrase: "Status"), headers: headers, body: response.body)
  }
}
