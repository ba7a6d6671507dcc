internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import LarderSync
internal import NIOCore

/// Answers in their form on the wire.
enum Answer {
  /// Returns an answer with a body.
  static func success(_ body: Data, type: String = "application/json", status: HTTPResponse.Status = .ok) -> Response {
    Response(
      status: status, headers: [.contentType: type, .cacheControl: "no-store"], body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }

  /// Returns the answer for a problem.
  static func problem(_ problem: SyncProblem, allow: HTTPRequest.Method? = nil) -> Response {
    var headers: HTTPFields = [.contentType: "application/problem+json", .cacheControl: "no-store"]
    switch problem {
    case .unauthorized: headers[.wwwAuthenticate] = "Bearer"
    case .unavailable(let seconds), .tooManyRequests(let seconds): headers[.retryAfter] = String(Int((seconds ?? 1).rounded(.up)))
    default: break
    }
    if let allow { headers[.allow] = allow.rawValue }
    return Response(
      status: HTTPResponse.Status(code: problem.status), headers: headers,
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: problem.json)))
  }
}
