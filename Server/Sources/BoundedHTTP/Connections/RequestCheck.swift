internal import HTTPTypes
internal import LarderSync
package import NIOCore
package import NIOHTTP1

/// The check of what all requests have, and the answer to what is no request.
///
/// It stands next to the parser, where the version of a request is still known. Hummingbird answers an error of the parser behind the
/// answers to the requests before it, with a 400 of its own: the problem takes the place of that.
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
    // What follows a request that is refused here could not be told from its body.
    guard refusal == nil else { return }
    guard case .head(var head) = part else { return context.fireChannelRead(data) }
    let (isOld, hosts) = (head.version.minor == 0, head.headers["host"].count)
    guard hosts == 1 || isOld && hosts == 0 else {
      refusal = Refusal(.malformed("expected one Host, found \(hosts)"), hasBody: head.method != .HEAD)
      return context.fireErrorCaught(HTTPParserError.invalidHeaderToken)
    }
    // Hummingbird knows this one spelling.
    if !head.isKeepAlive { head.headers.replaceOrAdd(name: "Connection", value: "close") }
    // An old client knows no interim answers, and does not mean them.
    if isOld { head.headers.remove(name: "Expect") }
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }

  package func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if refusal == nil, let error = error as? HTTPParserError { refusal = Refusal(error, source, paths) }
    // Nothing more is parsed: the answer must reach a client that goes on sending.
    source.noteParsed(isInBody: false)
    context.fireErrorCaught(error)
  }

  package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    // No other answer with this status is empty.
    guard let refusal, case .head(let head) = unwrapOutboundIn(data), head.status == .badRequest,
      head.headers.first(name: "Content-Length") == "0"
    else { return context.write(data, promise: promise) }
    log.note(refusal.path, method: nil, status: refusal.problem.status)
    context.write(wrapOutboundOut(.head(refusal.head)), promise: promise)
    if refusal.hasBody { context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: refusal.problem.json)))), promise: nil) }
  }
}

/// The reason why a request is refused before anything is looked for at its path.
private struct Refusal {
  let problem: SyncProblem
  /// The path that was asked for with a method that it does not take.
  var path: KnownPath?
  let hasBody: Bool

  init(_ problem: SyncProblem, hasBody: Bool) { (self.problem, self.hasBody) = (problem, hasBody) }

  init(_ error: HTTPParserError, _ source: RequestBytes, _ paths: any KnownPaths) {
    hasBody = true
    if error == .invalidMethod, let asked = source.path() {
      // The parser knows a list of methods; a path takes none of the others either.
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
    return HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: problem.status), headers: headers)
  }
}
