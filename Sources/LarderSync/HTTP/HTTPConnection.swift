internal import Foundation
internal import Larder
internal import LarderWire
internal import Synchronization

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// A complete answer of a server.
struct HTTPAnswer: Sendable {
  let status: Int
  let body: Data
  /// Seconds to wait before the next request, from the header `Retry-After`.
  let retryAfter: Double?
}

/// The HTTP connections of one transport: URLSession without cookies and cache, and sockets for plain http on Linux.
///
/// `URLSession.data(for:)` is not used. On Linux, its cancellation can wait for the session's queue while it holds the lock of the Swift
/// task. The queue then waits for that lock, and both wait for ever (Swift 6.3.1). `bytes(for:)` does not exist on Linux.
final class HTTPConnection: Sendable {
  private let calls = HTTPCalls()
  private let session: URLSession
  #if canImport(FoundationNetworking)
    private let sockets: SocketPool
  #endif
  /// Queue of the timeouts, whose blocks never wait.
  static let clock = DispatchQueue(label: "larder.sync.clock")
  /// Queue of the cancellations, which on Linux may wait for the session.
  private static let cancellations = DispatchQueue(label: "larder.sync.cancellations")

  /// Creates the connections of a transport.
  ///
  /// - Parameter idleTime: Time for which an idle connection over plain http is kept on Linux. Most servers keep it longer. If one does
  ///   not, the request is sent again.
  init(idleTime: Duration = .seconds(4)) {
    #if canImport(FoundationNetworking)
      sockets = SocketPool(idleTime: idleTime)
    #endif
    let configuration = URLSessionConfiguration.ephemeral
    // The token is the only credential, and a page from a cache could be an old one.
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    // The default is 4 or 6, depending on the platform. Each scope holds one connection for its event stream.
    configuration.httpMaximumConnectionsPerHost = 64
    session = URLSession(configuration: configuration, delegate: calls, delegateQueue: Self.queue)
  }

  // A session keeps its delegate until it is invalidated.
  deinit { session.invalidateAndCancel() }

  #if canImport(FoundationNetworking)
    private static var queue: OperationQueue? { InlineQueue() }
  #else
    private static var queue: OperationQueue? { nil }
  #endif

  /// Sends a request and returns the complete answer.
  ///
  /// - Throws: `.unreachable` without an answer within the time, which starts anew with each 64 KiB sent or received, `.answerTooLarge` for
  ///   an answer over the limit, `CancellationError`.
  func send(_ request: URLRequest, limit: Int, within time: Duration) async throws -> HTTPAnswer {
    var request = request
    // URLSession limits the pause between two packets. The watch below is shorter, so that it decides.
    request.timeoutInterval = time / .seconds(1) + 60
    let answer = OneShot<Result<HTTPAnswer, any Error>>()
    let call = HTTPCall(limit: limit, end: { answer.resolve($0) })
    let stop = begin(request, call, isReusable: true)
    Self.watch(call, time, stop, "no answer within \(time)") { call, seen in call.passed >= seen + Self.piece ? call.passed : nil }
    return try await withTaskCancellationHandler {
      await answer.value()
    } onCancel: {
      // On another queue: this closure may run under the lock of the waiting task.
      Self.clock.async { if answer.resolve(.failure(CancellationError())) { stop() } }
    }.get()
  }

  /// Bytes that must pass within the time of an answer for the time to start anew.
  ///
  /// A slow network gets more time. A server that sends a byte a second does not.
  private static let piece = 64 << 10

  /// Sends a request and returns its answer in pieces, until it ends, fails, or is silent for a time.
  func stream(_ request: URLRequest, firstLimit: Duration, silenceLimit: Duration) -> AsyncThrowingStream<Data, any Error> {
    var request = request
    request.timeoutInterval = silenceLimit / .seconds(1) + 60
    return AsyncThrowingStream { continuation in
      let call = HTTPCall(limit: 1 << 16, piece: { continuation.yield($0) }) { result in
        // Another status than 200 has a problem as its body. An answer that ends normally ends the stream.
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
  /// - Parameter isReusable: Whether it may use the connection of an earlier request, and leave it to a later one.
  /// - Returns: A closure that stops the request without waiting.
  private func begin(_ request: URLRequest, _ call: HTTPCall, isReusable: Bool) -> @Sendable () -> Void {
    #if canImport(FoundationNetworking)
      if request.url?.scheme?.lowercased() == "http" {
        let request = SocketRequest(request, call, isReusable ? sockets : nil)
        request.start()
        return { [weak request] in request?.cancel() }
      }
    #endif
    let task = session.dataTask(with: request)
    calls.add(call, of: task)
    task.resume()
    // Weak, or the received data would stay in memory until the timeout.
    return { [weak task] in if let task { Self.stop(task) } }
  }

  /// Stops a request without progress within a time, such as on a connection whose other end has vanished.
  ///
  /// - Parameters:
  ///   - first: The time for the first progress, if it differs.
  ///   - progress: Returns the new position of the request if it has moved far enough from the old one, and `nil` otherwise.
  private static func watch(
    _ call: HTTPCall, from seen: Int = 0, _ limit: Duration, first: Duration? = nil, _ stop: @escaping @Sendable () -> Void,
    _ words: String, _ progress: @escaping @Sendable (HTTPCall, Int) -> Int?
  ) {
    // Weak, or the received data would stay in memory until the timeout.
    clock.asyncAfter(deadline: .now() + (first ?? limit) / .seconds(1)) { [weak call] in
      guard let call else { return }
      if let next = progress(call, seen) { return watch(call, from: next, limit, stop, words, progress) }
      // First, so that the call ends with this error and not with that of the cancellation.
      call.fail(SyncProblem.unreachable(words))
      stop()
    }
  }

  /// Cancels a task of the session without waiting.
  static func stop(_ task: URLSessionTask) { cancellations.async { task.cancel() } }
}

#if canImport(FoundationNetworking)
  /// An operation queue that runs its operations at once, on the calling thread.
  ///
  /// On Linux, URLSession reads on without waiting for its delegate. Received data would pile up in the queue, past any limit.
  // The superclass is @unchecked Sendable, and a subclass must repeat it. This class adds no state.
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

  /// Creates a call.
  ///
  /// - Parameters:
  ///   - limit: The most bytes of a body that is gathered.
  ///   - piece: Receives the pieces of an answer with status 200, which are then not gathered.
  ///   - end: Called once, with the result.
  init(
    limit: Int, piece: (@Sendable (Data) -> Void)? = nil, end: @escaping @Sendable (Result<HTTPAnswer, any Error>) -> Void
  ) {
    (self.limit, self.piece, self.end) = (limit, piece, end)
  }

  /// Number of received bytes.
  var received: Int { state.withLock { $0.received } }
  /// Number of sent and received bytes.
  var passed: Int { state.withLock { $0.sent + $0.received } }

  /// Counts sent bytes.
  func noteSent(_ count: Int) { state.withLock { $0.sent += count } }

  /// Adds a received piece of the answer.
  ///
  /// - Returns: Whether to receive more.
  func receive(_ data: Data, status: Int) -> Bool {
    let isStreamed = piece != nil && status == 200
    let isTooLarge = state.withLock { state in
      state.received += data.count
      if isStreamed { return false }
      // Before appending, so that the limit bounds the memory.
      if data.count > limit - state.body.count { return true }
      state.body.append(data)
      return false
    }
    // Outside the lock, since `piece` is foreign code.
    if isStreamed, !data.isEmpty { piece?(data) }
    if isTooLarge { fail(SyncProblem.answerTooLarge) }
    return !isTooLarge
  }

  /// Ends the call with an error.
  func fail(_ error: any Error) { finish(.failure(error)) }

  /// Ends the call with the gathered body.
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

  /// Ends the call, unless it has ended.
  private func finish(_ result: Result<HTTPAnswer, any Error>) {
    // An answer, a timeout and a cancellation may come at the same moment.
    let isFirst = state.withLock { state in
      defer { state.hasEnded = true }
      return !state.hasEnded
    }
    if isFirst { end(result) }
  }

  /// Returns the reason for a missing answer, without the address, which may hold a password.
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

/// The delegate of a session, which passes data and errors of each task to its call.
final class HTTPCalls: NSObject, URLSessionDataDelegate, Sendable {
  private let calls = Mutex<[Int: HTTPCall]>([:])

  func add(_ call: HTTPCall, of task: URLSessionTask) { calls.withLock { $0[task.taskIdentifier] = call } }

  private func call(of task: URLSessionTask) -> HTTPCall? { calls.withLock { $0[task.taskIdentifier] } }

  // Redirects are refused, since one to another host would pass the token on.
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
    // The map would otherwise keep every call of the session.
    calls.withLock { _ = $0.removeValue(forKey: task.taskIdentifier) }
  }
}
