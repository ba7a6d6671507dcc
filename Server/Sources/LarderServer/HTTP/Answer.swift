internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import LarderSync
internal import NIOCore

/// Answers in their form on the wire.
enum Answer {
  /// Returns an answer with a body, in gzip where the client takes that and it pays.
  static func success(_ body: Data, type: String = "application/json", to request: Request) -> Response {
    var headers: HTTPFields = [.contentType: type, .cacheControl: "no-store", .vary: "Accept-Encoding"]
    var body = body
    if body.count >= Gzip.worthwhile, AcceptedEncodings(request.headers[.acceptEncoding]).takesGzip, let packed = Gzip.packed(body) {
      body = packed
      headers[.contentEncoding] = "gzip"
    }
    return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }

  /// Returns the answer for a problem.
  static func problem(_ problem: SyncProblem, allow: HTTPRequest.Method? = nil) -> Response {
    Response(
      status: HTTPResponse.Status(code: problem.status), headers: fields(of: problem, allow: allow),
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: problem.json)))
  }

  /// Returns the fields of the answer for a problem, without those of its connection.
  static func fields(of problem: SyncProblem, allow: HTTPRequest.Method? = nil) -> HTTPFields {
    var headers: HTTPFields = [.contentType: "application/problem+json", .cacheControl: "no-store"]
    switch problem {
    case .unauthorized: headers[.wwwAuthenticate] = "Bearer"
    case .unavailable(let seconds), .tooManyRequests(let seconds): headers[.retryAfter] = String(Int((seconds ?? 1).rounded(.up)))
    default: break
    }
    if let allow { headers[.allow] = allow.rawValue }
    return headers
  }
}
