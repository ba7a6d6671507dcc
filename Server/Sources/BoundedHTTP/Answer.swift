public import Foundation
public import HTTPTypes
public import Hummingbird
public import LarderSync
internal import NIOCore

/// Answers in their form on the wire.
public enum Answer {
  /// Returns an answer with a body, in gzip where the client takes that and it pays.
  ///
  /// - Parameters:
  ///   - fields: Fields of the answer; without `Cache-Control`, nobody keeps it.
  ///   - packed: The body in gzip, for one that is packed once and sent often.
  ///   - mayPack: Whether it may be in gzip; an answer with a strong entity tag may not, whose tag is of its own bytes.
  public static func success(
    _ body: Data, type: String = "application/json", status: HTTPResponse.Status = .ok, fields: HTTPFields = [:], packed: Data? = nil,
    mayPack: Bool = true, to request: Request
  ) -> Response {
    var headers = fields
    headers[.contentType] = type
    headers[.vary] = "Accept-Encoding"
    if headers[.cacheControl] == nil { headers[.cacheControl] = "no-store" }
    var body = body
    if mayPack, body.count >= Gzip.worthwhile, AcceptedEncodings(request.headers[.acceptEncoding]).takesGzip,
      let packed = packed ?? Gzip.packed(body)
    {
      body = packed
      headers[.contentEncoding] = "gzip"
    }
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: body)))
  }

  /// Returns the answer for a problem.
  public static func problem(_ problem: SyncProblem, at path: KnownPath? = nil) -> Response {
    Response(
      status: HTTPResponse.Status(code: problem.status), headers: fields(of: problem, at: path),
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: problem.json)))
  }

  /// Returns the fields of the answer for a problem, without those of its connection.
  static func fields(of problem: SyncProblem, at path: KnownPath? = nil) -> HTTPFields {
    var headers: HTTPFields = [.contentType: "application/problem+json", .cacheControl: "no-store"]
    switch problem {
    case .unauthorized: headers[.wwwAuthenticate] = "Bearer"
    case .unavailable(let seconds), .tooManyRequests(let seconds): headers[.retryAfter] = String(Int((seconds ?? 1).rounded(.up)))
    case .refused(status: 405, _): headers[.allow] = path?.allow
    default: break
    }
    return headers
  }
}
