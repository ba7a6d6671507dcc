import FlyingFox
import FlyingSocks
import Foundation

/// A server on loopback that gives fixed pages.
final class PageServer: Sendable {
  let port: Int
  var url: String { "http://127.0.0.1:\(port)" }
  var host: String { "127.0.0.1:\(port)" }

  private init(_ port: UInt16) { self.port = Int(port) }

  /// Runs something beside a server that has pages, by their paths, and stops that afterwards.
  static func running<Result>(
    _ pages: [String: String], hanging: String? = nil, _ body: (PageServer) async throws -> Result
  ) async throws -> Result {
    let server = HTTPServer(address: try .inet(ip4: "127.0.0.1", port: 0))
    await server.appendRoute("GET /*") { request in
      if request.path == hanging { await untilCancelled() }
      guard let page = pages[request.path] else { return HTTPResponse(statusCode: .notFound) }
      let type = request.path.hasSuffix(".js") ? "text/javascript" : "text/html; charset=utf-8"
      return HTTPResponse(statusCode: .ok, headers: [.contentType: type], body: Data(page.utf8))
    }
    let running = Task { try await server.run() }
    defer { running.cancel() }
    try await server.waitUntilListening()
    guard case .ip4(_, let port) = await server.listeningAddress else { throw URLError(.badURL) }
    return try await body(PageServer(port))
  }

  /// Returns when the task is cancelled.
  private static func untilCancelled() async {
    let (never, continuation) = AsyncStream.makeStream(of: Never.self)
    for await _ in never {}
    continuation.finish()
  }
}
