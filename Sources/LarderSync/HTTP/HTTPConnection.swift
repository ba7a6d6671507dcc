internal import Foundation
internal import Larder
internal import LarderWire
internal import Synchronization

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// A complete HTTP answer of a server: its status, its body and its `Retry-After`.
struct HTTPAnswer: Sendable {
  let status: Int
  let body: Data
  /// Seconds to wait before the next request, from the header `Retry-After`.
  let retryAfter: Double?
}

/// The HTTP connections of one transport: URLSession without cookies and cache, and sockets for plain http on Linux.
///
/// `URLSession.data(for:)` is not used, since its cancellation can deadlock on Linux (Swift 6.3.1). The cancellation holds the lock of the
/// Swift task while it waits for the session's queue. At the same time a block on the session's queue may wait for the lock of the Swift
/// task. `URLSession.bytes(for:)` does not exist on Linux.
final class HTTPConnection: Sendable {
  private let calls = HTTPCalls()
  private let session: URLSession
  #if canImport(FoundationNetworking)
    private let sockets: SocketPool
  #endif
  /// Queue on which the timeouts of requests run, whose blocks never wait.
  static let clock = DispatchQueue(label: "larder.sync.clock")
  /// Queue on which session tasks are cancelled, since on Linux a cancellation may wait for the session.
  private static let cancellations = DispatchQueue(label: "larder.sync.cancellations")

  /// Creates the connections of a transport.
  ///
  /// - Parameter idleTime: Time for which an idle connection over plain http is kept on Linux. Most servers keep an idle connection for
  ///   longer than the default of 4 seconds. If the server has closed the connection earlier, the request is sent again on a new
  ///   connection.
  init(idleTime: Duration = .seconds(4)) {
    #if canImport(FoundationNetworking)
      sockets = SocketPool(idleTime: idleTime)
    #endif
    let configuration = URLSessionConfiguration.ephemeral
    // The bearer token is the only credential, so cookies are not sent. An answer from a cache could be out of date, so there is no cache.
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    // URLSession's default is 4 or 6 connections to a host, depending on the platform. The event stream of each scope holds one connection,
    // so a few scopes would leave none for other requests.
    configuration.httpMaximumConnectionsPerHost = 64
    session = URLSession(configuration: configuration, delegate: calls, delegateQueue: Self.queue)
  }

  // A URLSession keeps a strong reference to its delegate until it is invalidated.
  deinit { session.invalidateAndCancel() }

  #if canImport(FoundationNetworking)
    private static var queue: OperationQueue? { InlineQueue() }
  #else
    private static var queue: OperationQueue? { nil }
  #endif

  /// Sends a request and returns the complete answer.
  ///
  /// - Throws: `.unreachable` if no answer is complete within `time`, which starts anew with each 64 KiB sent or received,
  ///   `.answerTooLarge` for an answer over the limit, `CancellationError`.
  func send(_ request: URLRequest, limit: Int, within time: Duration) async throws -> HTTPAnswer {
    var request = request
    // URLSession's own timeout, which limits the pause between two packets, is set longer than the timeout of `watch`, so that `watch` ends
    // the request.
    request.timeoutInterval = time / .seconds(1) + 60
    let answer = OneShot<Result<HTTPAnswer, any Error>>()
    let call = HTTPCall(limit: limit, end: { answer.resolve($0) })
    let stop = begin(request, call, isReusable: true)
    Self.watch(call, time, stop, "no answer within \(time)") { call, seen in call.passed >= seen + Self.piece ? call.passed : nil }
    return try await withTaskCancellationHandler {
      await answer.value()
    } onCancel: {
      // The request is ended on another queue, since the Swift runtime may run this closure under the lock of the waiting task.
      Self.clock.async { if answer.resolve(.failure(CancellationError())) { stop() } }
    }.get()
  }

  /// Number of bytes after which the timeout of a request starts anew, if they were sent or received within the timeout.
  ///
  /// A request over a slow network gets more time with each 64 KiB that were sent or received. A server that sends one byte a second gets
  /// no more time.
  private static let piece = 64 << 10

  /// Sends a request and returns its answer in pieces, until the answer ends, fails, or pauses for longer than `silenceLimit`.
  func stream(_ request: URLRequest, firstLimit: Duration, silenceLimit: Duration) -> AsyncThrowingStream<Data, any Error> {
    var request = request
    request.timeoutInterval = silenceLimit / .seconds(1) + 60
    return AsyncThrowingStream { continuation in
      let call = HTTPCall(limit: 1 << 16, piece: { continuation.yield($0) }) { result in
        // An answer with another status than 200 has a description of the error as its body, which the stream throws as a `SyncProblem`.
        // The end of an answer with status 200 ends the stream without an error.
        switch result {
        case .success(let answer) where answer.status == 200: continuation.finish()
        case .success(let answer):
          continuation.finish(throwing: SyncProblem(status: answer.status, body: answer.body, retryAfter: answer.retryAfter))
        case .failure(let error): continuation.finish(throwing: error)
        }
      }
      let stop = begin(request, call, isReusable: false)
      continuation.onTermination = { _ in Self.clock.async { stop() } }
      Self.watch(call, silenceLimit, first: firstLimit, stop, "nothing came in time") { $0.received > $1 ? $0.received : nil }
    }
  }

  /// Starts a request.
  ///
  /// - Parameter isReusable: Whether the request may use the connection of an earlier request, and leave its connection to a later one.
  /// - Returns: A closure that stops the request without waiting.
  private func begin(_ request: URLRequest, _ call: HTTPCall, isReusable: Bool) -> @Sendable () -> Void {
    #if canImport(FoundationNetworking)
      if request.url?.scheme?.lowercased() == "http" {
        let request = SocketRequest(request, for: call, pool: isReusable ? sockets : nil)
        request.start()
        return { [weak request] in request?.cancel() }
      }
    #endif
    let task = session.dataTask(with: request)
    calls.add(call, of: task)
    task.resume()
    // `watch` holds the returned closure until the timeout of the request. A strong reference would keep the task and its received data in
    // memory until the timeout.
    return { [weak task] in if let task { Self.stop(task) } }
  }

  /// Stops a request that makes no progress within `limit`, such as on a connection whose other end has vanished.
  ///
  /// - Parameters:
  ///   - first: The time for the first progress, if it differs from `limit`.
  ///   - progress: Returns the request's new byte count if it has grown enough since the old one, and `nil` otherwise.
  private static func watch(
    _ call: HTTPCall, from seen: Int = 0, _ limit: Duration, first: Duration? = nil, _ stop: @escaping @Sendable () -> Void,
    _ words: String, _ progress: @escaping @Sendable (HTTPCall, Int) -> Int?
  ) {
    // A strong reference would keep the call and its received data in memory until the timeout has passed.
    clock.asyncAfter(deadline: .now() + (first ?? limit) / .seconds(1)) { [weak call] in
      guard let call else { return }
      if let next = progress(call, seen) { return watch(call, from: next, limit, stop, words, progress) }
      // `fail` is called before `stop`, so that the call ends with the error of the timeout and not with the error of the cancellation.
      call.fail(SyncProblem.unreachable(words))
      stop()
    }
  }

  /// Cancels a task of the session on another queue, so that the caller does not wait.
  static func stop(_ task: URLSessionTask) { cancellations.async { task.cancel() } }
}

#if canImport(FoundationNetworking)
  /// An operation queue that runs its operations at once, on the calling thread.
  ///
  /// On Linux, URLSession continues to receive without waiting for its delegate. In an ordinary operation queue, more received data than
  /// the limit of an answer could pile up.
  // `OperationQueue` is @unchecked Sendable, and a subclass must repeat that. `InlineQueue` adds no state that threads could share.
  private final class InlineQueue: OperationQueue, @unchecked Sendable {
    override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }

    override func addOperation(_ operation: Operation) { operation.start() }
  }
#endif

/// A request under way, with the received part of its answer.
final class HTTPCall: Sendable {
  private struct State: Sendable {
    var body = Data()
    var (sent, received) = (0, 0)
    var hasEnded = false
  }

  private let limit: Int
  private let piece: (@Sendable (Data) -> Void)?
  private let end: @Sendable (Result<HTTPAnswer, any Error>) -> Void
  private let state = Mutex(State())

  /// Creates the `HTTPCall` of one request.
  ///
  /// - Parameters:
  ///   - limit: The largest number of bytes of a body that is kept in memory.
  ///   - piece: Receives the pieces of an answer with status 200, which the call does not keep in memory.
  ///   - end: Called once, with the answer or the error.
  init(
    limit: Int, piece: (@Sendable (Data) -> Void)? = nil, end: @escaping @Sendable (Result<HTTPAnswer, any Error>) -> Void
  ) {
    (self.limit, self.piece, self.end) = (limit, piece, end)
  }

  /// Number of bytes received so far.
  var received: Int { state.withLock { $0.received } }
  /// Number of bytes sent and received so far.
  var passed: Int { state.withLock { $0.sent + $0.received } }

  /// Adds a number of sent bytes to ``passed``, which shows that the request makes progress.
  func noteSent(_ count: Int) { state.withLock { $0.sent += count } }

  /// Adds received bytes of the answer's body.
  ///
  /// - Returns: `false` if the answer is over its limit, so that the caller stops receiving it.
  func receive(_ data: Data, status: Int) -> Bool {
    let isStreamed = piece != nil && status == 200
    let isTooLarge = state.withLock { state in
      state.received += data.count
      if isStreamed { return false }
      // The size is checked before the piece is appended, so that the limit bounds the memory.
      if data.count > limit - state.body.count { return true }
      state.body.append(data)
      return false
    }
    // `piece` is called outside the lock, since the caller's closure could use this call and then wait for the lock.
    if isStreamed, !data.isEmpty { piece?(data) }
    if isTooLarge { fail(SyncProblem.answerTooLarge) }
    return !isTooLarge
  }

  /// Ends the call with an error.
  func fail(_ error: any Error) { finish(.failure(error)) }

  /// Ends the call with a complete answer, whose body was received before.
  func complete(status: Int, retryAfter: Double?) {
    let body = state.withLock { $0.body }
    finish(.success(HTTPAnswer(status: status, body: body, retryAfter: retryAfter)))
  }

  fileprivate func complete(_ response: URLResponse?, _ error: (any Error)?) {
    guard error == nil, let response = response as? HTTPURLResponse else {
      return fail(SyncProblem.unreachable(Self.words(for: (error as? URLError)?.code)))
    }
    complete(status: response.statusCode, retryAfter: response.value(forHTTPHeaderField: "Retry-After").flatMap(Double.init))
  }

  /// Ends the call with a result, unless the call has already ended.
  private func finish(_ result: Result<HTTPAnswer, any Error>) {
    // An answer, a timeout and a cancellation may come at the same moment, and `end` must be called only once.
    let isFirst = state.withLock { state in
      defer { state.hasEnded = true }
      return !state.hasEnded
    }
    if isFirst { end(result) }
  }

  /// Returns the reason for a missing answer in words, without the server's address, which may hold a password.
  static func words(for code: URLError.Code?) -> String {
    switch code {
    case .cannotFindHost?, .dnsLookupFailed?: "the host is not known; is there a network?"
    case .cannotConnectToHost?: "the connection was refused"
    case .notConnectedToInternet?: "there is no network"
    case .timedOut?: "there was no answer in time"
    case .secureConnectionFailed?, .serverCertificateUntrusted?: "there is no secure connection"
    case .cancelled?: "the request was cancelled"
    case .appTransportSecurityRequiresSecureConnection?:
      "App Transport Security allows no http: use an https address, or name the host under NSAppTransportSecurity in Info.plist"
    default: "the connection broke off"
    }
  }
}

/// The delegate of a URLSession, which passes the data and the errors of each task to the task's `HTTPCall`.
final class HTTPCalls: NSObject, URLSessionDataDelegate, Sendable {
  private let calls = Mutex<[Int: HTTPCall]>([:])

  func add(_ call: HTTPCall, of task: URLSessionTask) { calls.withLock { $0[task.taskIdentifier] = call } }

  private func call(of task: URLSessionTask) -> HTTPCall? { calls.withLock { $0[task.taskIdentifier] } }

  // Redirects are refused, since a redirect to another host would send the bearer token there.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) { completionHandler(nil) }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64, totalBytesExpectedToSend: Int64
  ) { call(of: task)?.noteSent(Int(clamping: bytesSent)) }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let status = (dataTask.response as? HTTPURLResponse)?.statusCode ?? 0
    guard let call = call(of: dataTask), !call.receive(data, status: status) else { return }
    HTTPConnection.stop(dataTask)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    call(of: task)?.complete(task.response, error)
    // Without this removal, `calls` would keep every finished call of the session in memory.
    calls.withLock { _ = $0.removeValue(forKey: task.taskIdentifier) }
  }
}
