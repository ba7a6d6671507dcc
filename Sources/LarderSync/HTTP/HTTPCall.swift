internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
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
