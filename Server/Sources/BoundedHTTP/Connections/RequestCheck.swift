internal import HTTPTypes
package import NIOCore
package import NIOHTTP1

/// Channel handler that checks the head of each request, and answers requests that the parser refuses.
///
/// It stands next to the parser, where the HTTP version of a request is still known. Hummingbird answers an error of the parser with an
/// empty 400, after the answers to earlier requests. This handler replaces that response with the problem in JSON.
package final class RequestCheck: ChannelDuplexHandler, RemovableChannelHandler {
  package typealias InboundIn = HTTPServerRequestPart
  package typealias InboundOut = HTTPServerRequestPart
  package typealias OutboundIn = HTTPServerResponsePart
  package typealias OutboundOut = HTTPServerResponsePart

  private let source: RequestBytes
  private let paths: any KnownPaths
  private let log: AnswerLog
  private var refusal: Refusal?

  package init(_ source: RequestBytes, _ paths: any KnownPaths, _ log: AnswerLog) {
    (self.source, self.paths, self.log) = (source, paths, log)
  }

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let part = unwrapInboundIn(data)
    if case .end = part { source.noteParsed(isInBody: false) } else { source.noteParsed(isInBody: refusal == nil) }
    // Bytes after a refused request cannot be told from its body, so nothing more is passed on.
    guard refusal == nil else { return }
    guard case .head(var head) = part else { return context.fireChannelRead(data) }
    let (isOld, hosts) = (head.version.minor == 0, head.headers["host"].count)
    // RFC 9112, 3.2: a request without exactly one Host gets 400. HTTP/1.0 may have none.
    guard hosts == 1 || isOld && hosts == 0 else {
      refusal = Refusal(.malformed("expected one Host, found \(hosts)"), hasBody: head.method != .HEAD)
      // Hummingbird answers this error in its turn, and `write` replaces that answer.
      return context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
    }
    // Hummingbird compares with exactly this value, and `isKeepAlive` accepts every spelling.
    if !head.isKeepAlive { head.headers.replaceOrAdd(name: "Connection", value: "close") }
    // RFC 9110, 10.1.1: the expectation of an HTTP/1.0 client, which knows no interim responses, must be ignored.
    if isOld { head.headers.remove(name: "Expect") }
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }

  package func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if refusal == nil, let error = error as? HTTPParserError { refusal = Refusal(error, source, paths) }
    // Stops the count of unparsed bytes, or the connection of a client that goes on sending would close before the answer arrives.
    source.noteParsed(isInBody: false)
    context.fireErrorCaught(error)
  }

  package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    // Only Hummingbird's answer to an error of the parser is an empty 400. Earlier answers in the pipeline pass unchanged.
    guard let refusal, case .head(let head) = unwrapOutboundIn(data), head.status == .badRequest,
      head.headers.first(name: "Content-Length") == "0"
    else { return context.write(data, promise: promise) }
    log.note(refusal.path, method: nil, status: refusal.problem.status.code)
    context.write(wrapOutboundOut(.head(refusal.head)), promise: promise)
    // RFC 9110, 9.3.2: the answer to HEAD has no body. A client would read one as the next answer.
    if refusal.hasBody { context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: refusal.problem.json)))), promise: nil) }
  }
}

/// Reason to refuse a request before its path is looked up.
private struct Refusal {
  let problem: HTTPProblem
  /// Known path of the request, when it does not accept the method.
  var path: KnownPath?
  let hasBody: Bool

  init(_ problem: HTTPProblem, hasBody: Bool) { (self.problem, self.hasBody) = (problem, hasBody) }

  init(_ error: HTTPParserError, _ source: RequestBytes, _ paths: any KnownPaths) {
    hasBody = true
    if error == .invalidMethod, let asked = source.path() {
      // The parser accepts a fixed list of methods. No path accepts any other, so this is 405 for a known path and 404 otherwise.
      path = paths.find(String(asked.prefix { $0 != "?" }))
      problem = path?.wrongMethod ?? KnownPath.nothing
    } else {
      let isLong = error == .headerOverflow
      problem = .malformed(isLong ? "expected a head within the limits, found a longer one" : "expected HTTP/1.1, found \(error)")
    }
  }

  var head: HTTPResponseHead {
    var fields = Answer.fields(of: problem, at: path)
    fields[.contentLength] = String(problem.json.count)
    fields[.connection] = "close"
    let headers = HTTPHeaders(fields.map { ($0.name.rawName, $0.value) })
    return HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: problem.status.code), headers: headers)
  }
}
