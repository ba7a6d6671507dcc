internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import LarderSync
internal import NIOCore

/// The body of a request, within the limits.
enum RequestContents {
  /// Returns the body.
  ///
  /// - Throws: `.tooLarge`, `.refused` with 408 for a body that comes too slowly, 415 for a form that is not known.
  static func read(_ request: Request, _ options: ServerOptions) async throws(SyncProblem) -> Data {
    if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > options.bodyBytes { throw .tooLarge }
    let body = try await collect(request.body, limit: options.bodyBytes, seconds: options.bodySeconds)
    switch request.headers[.contentEncoding]?.lowercased() {
    case nil, "identity": return body
    default: throw .refused(status: 415, detail: "Expected a body without encoding.")
    }
  }

  private static func collect(_ body: RequestBody, limit: Int, seconds: Int) async throws(SyncProblem) -> Data {
    let result = await withTaskGroup(of: Result<Data, SyncProblem>.self) { group in
      group.addTask {
        var data = Data()
        do {
          for try await part in body {
            if data.count + part.readableBytes > limit { return .failure(.tooLarge) }
            data.append(contentsOf: part.readableBytesView)
          }
        } catch { return .failure(.malformed("the body ended early")) }
        return .success(data)
      }
      group.addTask {
        do { try await Task.sleep(for: .seconds(seconds)) } catch { return .failure(.unavailable(retryAfter: nil)) }
        return .failure(.refused(status: 408, detail: "Expected the body within \(seconds) seconds."))
      }
      let first = await group.next()
      group.cancelAll()
      return first ?? .failure(.unavailable(retryAfter: nil))
    }
    return try result.get()
  }
}
