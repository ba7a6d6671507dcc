internal import Foundation
internal import Larder
internal import Synchronization

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// An answer of a server.
struct HTTPAnswer: Sendable {
  let status: Int
  let body: Data
  /// The seconds that the server asks to wait, in its header `Retry-After`.
  let retryAfter: Double?
}

/// The requests of one transport, through URLSession without cookies and without a cache.
///
/// Not `URLSession.data(for:)`: on Linux its cancellation can wait for the session's queue while it holds the lock of the Swift task, which
/// that queue wants, too, and then both wait for ever (seen with Swift 6.3.1); and `bytes(for:)` is missing there.
final class HTTPConnection: Sendable {
  private let calls = HTTPCalls()
  private let session: URLSession
  #if canImport(FoundationNetworking)
    private let sockets: SocketPool
  #endif
  /// Runs what never waits: the ends of waiting times.
  static let clock = DispatchQueue(label: "larder.sync.clock")
  /// Runs cancellations, which on Linux may wait for the session.
  private static let cancellations = DispatchQueue(label: "larder.sync.cancellations")

  /// - Parameter idleTime: How long a connection over plain http waits for its next request on Linux. Most servers give it longer. Where
  ///   one does not, the request is sent again.
  init(idleTime: Duration = .seconds(4)) {
    #if canImport(FoundationNetworking)
      sockets = SocketPool(idleTime: idleTime)
    #endif
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    // Each scope has a stream of events that stays open.
    configuration.httpMaximumConnectionsPerHost = 64
    session = URLSession(configuration: configuration, delegate: calls, delegateQueue: Self.queue)
  }

  deinit { session.invalidateAndCancel() }

  #if canImport(FoundationNetworking)
    private static var queue: OperationQueue? { InlineQueue() }
  #else
    private static var queue: OperationQueue? { nil }
  #endif

  /// Sends a request; returns once the answer is there.
  ///
  /// - Throws: `.unreachable` where there is no answer within the time, which begins again with each 64 KiB that have gone or come;
  ///   `.answerTooLarge` for one over the limit; `CancellationError`.
  func send(_ request: URLRequest, limit: Int, within time: Duration) async throws -> HTTPAnswer {
    var request = request
    // URLSession's own limit is for a pause between two packets; the one below is shorter.
    request.timeoutInterval = time / .seconds(1) + 60
    let answer = OneShot<Result<HTTPAnswer, any Error>>()
    let call = HTTPCall(limit: limit, end: { answer.resolve($0) })
    let stop = begin(request, call, isReusable: true)
    Self.watch(call, time, stop, "no answer within \(time)") { call, seen in call.passed >= seen + Self.piece ? call.passed : nil }
    return try await withTaskCancellationHandler {
      await answer.value()
    } onCancel: {
      // From elsewhere: what runs here may hold the lock of the task that waits.
      Self.clock.async { if answer.resolve(.failure(CancellationError())) { stop() } }
    }.get()
  }

  /// The bytes that must pass in the time for an answer, unless it is there by then: a slow line is given that time again, a byte a second
  /// is not.
  private static let piece = 64 << 10

  /// Sends a request whose answer comes in pieces, until it ends, fails, or nothing comes for a time.
  func stream(_ request: URLRequest, firstLimit: Duration, silenceLimit: Duration) -> AsyncThrowingStream<Data, any Error> {
    var request = request
    request.timeoutInterval = silenceLimit / .seconds(1) + 60
    return AsyncThrowingStream { continuation in
      let call = HTTPCall(limit: 1 << 16, piece: { continuation.yield($0) }) { result in
        // A status other than 200 ends the stream with its problem; an answer that ends is an end.
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

  /// Begins a request.
  ///
  /// - Parameter isReusable: Whether it may use the connection of an earlier request, and leave it to a later one.
  /// - Returns: What ends it, and waits for nothing.
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
    // Weak, or what has come would stay until its time was up.
    return { [weak task] in if let task { Self.stop(task) } }
  }

  /// Ends a request that makes no progress within a time, as on a connection whose other end is gone without a word.
  ///
  /// - Parameters:
  ///   - first: The time for the first progress, where that is another.
  ///   - progress: Returns how far the request has come, if that is far enough from where it was.
  private static func watch(
    _ call: HTTPCall, from seen: Int = 0, _ limit: Duration, first: Duration? = nil, _ stop: @escaping @Sendable () -> Void,
    _ words: String, _ progress: @escaping @Sendable (HTTPCall, Int) -> Int?
  ) {
    // Weak, or what has come would stay until its time was up.
    clock.asyncAfter(deadline: .now() + (first ?? limit) / .seconds(1)) { [weak call] in
      guard let call else { return }
      if let next = progress(call, seen) { return watch(call, from: next, limit, stop, words, progress) }
      call.fail(SyncProblem.unreachable(words))
      stop()
    }
  }

  static func stop(_ task: URLSessionTask) { cancellations.async { task.cancel() } }
}

#if canImport(FoundationNetworking)
  /// A queue that runs what it is given at once, on the thread that gives it.
  ///
  /// On Linux, URLSession reads on without waiting for its delegate: what came and was not looked at yet would pile up, whatever the limit.
  // The superclass is @unchecked Sendable, which must be said again; this class adds no state.
  private final class InlineQueue: OperationQueue, @unchecked Sendable {
    override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }

    override func addOperation(_ operation: Operation) { operation.start() }
  }
#endif

/// A request under way, and as much of its answer as has come.
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

  /// Makes a call.
  ///
  /// - Parameters:
  ///   - limit: The most bytes of a body that is gathered.
  ///   - piece: Takes the pieces of an answer with status 200, which are then not gathered.
  ///   - end: Is told once how the call has ended.
  init(
    limit: Int, piece: (@Sendable (Data) -> Void)? = nil, end: @escaping @Sendable (Result<HTTPAnswer, any Error>) -> Void
  ) {
    (self.limit, self.piece, self.end) = (limit, piece, end)
  }

  /// The bytes of the answer that have come.
  var received: Int { state.withLock { $0.received } }
  /// The bytes of the request that have gone, and those of the answer that have come.
  var passed: Int { state.withLock { $0.sent + $0.received } }

  /// Notes that bytes of the request have gone.
  func noteSent(_ count: Int) { state.withLock { $0.sent += count } }

  /// Takes a piece of the answer.
  /// - Returns: Whether more of it is wanted.
  func take(_ data: Data, status: Int) -> Bool {
    let isStreamed = piece != nil && status == 200
    let isTooLarge = state.withLock { state in
      state.received += data.count
      if isStreamed { return false }
      if data.count > limit - state.body.count { return true }
      state.body.append(data)
      return false
    }
    if isStreamed, !data.isEmpty { piece?(data) }
    if isTooLarge { fail(SyncProblem.answerTooLarge) }
    return !isTooLarge
  }

  func fail(_ error: any Error) { finish(.failure(error)) }

  /// Ends the call with what was gathered.
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

  private func finish(_ result: Result<HTTPAnswer, any Error>) {
    let isFirst = state.withLock { state in
      defer { state.hasEnded = true }
      return !state.hasEnded
    }
    if isFirst { end(result) }
  }

  /// Returns why there is no answer; without the address, which may hold a password.
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

/// The delegate of a session: tells each call what comes of it.
final class HTTPCalls: NSObject, URLSessionDataDelegate, Sendable {
  private let calls = Mutex<[Int: HTTPCall]>([:])

  func add(_ call: HTTPCall, of task: URLSessionTask) { calls.withLock { $0[task.taskIdentifier] = call } }

  private func call(of task: URLSessionTask) -> HTTPCall? { calls.withLock { $0[task.taskIdentifier] } }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) { completionHandler(nil) }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64, totalBytesExpectedToSend: Int64
  ) { call(of: task)?.noteSent(Int(clamping: bytesSent)) }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let status = (dataTask.response as? HTTPURLResponse)?.statusCode ?? 0
    guard let call = call(of: dataTask), !call.take(data, status: status) else { return }
    HTTPConnection.stop(dataTask)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    call(of: task)?.complete(task.response, error)
    calls.withLock { _ = $0.removeValue(forKey: task.taskIdentifier) }
  }
}
