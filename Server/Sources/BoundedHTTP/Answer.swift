public import Foundation
public import HTTPTypes
public import Hummingbird
internal import NIOCore

/// Constructors of HTTP responses: successes with optional gzip, and problems in JSON.
public enum Answer {
  /// Returns a response with a body, compressed with gzip if the client accepts it and it makes the body smaller.
  ///
  /// - Parameters:
  ///   - fields: Header fields of the response. Without `Cache-Control`, the response gets `no-store`.
  ///   - packed: The body as compressed by ``Gzip/packed(_:)``. Pass it for a body that is compressed once and sent often.
  ///   - mayPack: Whether gzip is allowed. Pass false with a strong entity tag, which identifies the uncompressed bytes.
  public static func success(
    _ body: Data, type: String = "application/json", status: HTTPResponse.Status = .ok, fields: HTTPFields = [:], packed: Data? = nil,
    mayPack: Bool = true, to request: Request
  ) -> Response {
    var headers = fields
    headers[.contentType] = type
    // A cache must not give the compressed form to a client that does not accept gzip.
    headers[.vary] = "Accept-Encoding"
    // Most answers depend on the token of the request, so no cache stores them by default.
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

  /// Returns the response for a problem, with the header fields that its status requires.
  ///
  /// - Parameter path: The path of the request, whose methods a 405 lists.
  public static func problem(_ problem: HTTPProblem, at path: KnownPath? = nil) -> Response {
    Response(
      status: problem.status, headers: fields(of: problem, at: path),
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: problem.json)))
  }

  /// Returns the header fields of the response for a problem, without `Connection`.
  static func fields(of problem: HTTPProblem, at path: KnownPath? = nil) -> HTTPFields {
    var headers: HTTPFields = [.contentType: "application/problem+json", .cacheControl: "no-store"]
    // RFC 9110, 11.6.1: a 401 must name an authentication scheme.
    if problem.status == .unauthorized { headers[.wwwAuthenticate] = "Bearer" }
    // RFC 9110, 15.5.6: a 405 must list the allowed methods.
    if problem.status == .methodNotAllowed { headers[.allow] = path?.allow }
    if let seconds = problem.retryAfter { headers[.retryAfter] = String(seconds) }
    return headers
  }
}
