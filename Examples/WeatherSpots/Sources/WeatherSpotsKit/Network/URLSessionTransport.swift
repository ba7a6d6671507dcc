import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A transport on URLSession, without cookies and without a cache, since the app itself decides how long an answer is fresh.
public final class URLSessionTransport: Transport {
  private let session: URLSession
  private let exchanges = Exchanges()
  private let bodyLimit: Int
  /// Queue of the cancellations, since `cancel()` waits for the session on Linux.
  private static let cancellations = DispatchQueue(label: "weather-spots.cancellations")

  /// Makes a transport.
  ///
  /// - Parameter bodyLimit: Largest body that ``get(_:)`` accepts, in bytes: 8 MiB by default.
  public init(bodyLimit: Int = 8 << 20) {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldSetCookies = false
    // A cached answer would look like a fresh one to the forecast cache, with the time of this request.
    configuration.urlCache = nil
    session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: Self.delegateQueue)
    self.bodyLimit = bodyLimit
  }

  // A session keeps its delegate until it is invalidated. On Linux, a session that was released without that could leave the connection of
  // a cancelled task open.
  deinit { Self.cancellations.async { [session] in session.invalidateAndCancel() } }

  #if canImport(FoundationNetworking)
    private static var delegateQueue: OperationQueue? { InlineQueue() }
  #else
    private static var delegateQueue: OperationQueue? { nil }
  #endif

  /// Fetches a URL.
  ///
  /// The complete answer must arrive within the time limit. The download of a body over the limit is cancelled. At most five redirections
  /// are followed, to https or to the scheme of the request, and none for a request with header fields.
  ///
  /// On Linux, URLSession cancels a download only when it has read every byte that has arrived. A server that sends faster than this
  /// process reads can therefore continue a cancelled download, and other requests of the process wait meanwhile. The transport drops
  /// the bytes.
  public nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    var urlRequest = URLRequest(url: request.url)
    for (name, value) in request.headers { urlRequest.setValue(value, forHTTPHeaderField: name) }
    // A redirection would send the header fields, and with them a token, to another host.
    return try await send(urlRequest, redirections: request.headers.isEmpty ? 5 : 0, bodyLimit: bodyLimit, timeout: request.timeout)
  }

  /// Sends a request and returns when the answer is complete, the time is up, or the caller is cancelled.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - redirections: Number of redirections to follow. The next one is returned as the answer.
  ///   - bodyLimit: Largest body in bytes.
  ///   - timeout: Time limit for the complete answer.
  nonisolated(nonsending) func send(
    _ request: URLRequest, redirections: Int, bodyLimit: Int, timeout: Duration
  ) async throws(TransportError) -> TransportResponse {
    var request = request
    // URLSession's limit counts from packet to packet. The timer below limits the whole answer and must fire first, hence the 60 s.
    request.timeoutInterval = timeout / .seconds(1) + 60
    let exchange = Exchange(request.url, redirections: redirections, bodyLimit: bodyLimit)
    let task = session.dataTask(with: request)
    // Added before `resume`: a delegate call that finds no exchange is dropped, and the caller would wait until the timeout.
    exchanges.add(exchange, of: task)
    // Without the removal each body would stay in memory for as long as the transport lives.
    defer { exchanges.remove(task) }
    // Weak references: strong ones would keep every body in memory until its timer fires.
    DispatchQueue.global().asyncAfter(deadline: .now() + timeout / .seconds(1)) { [weak exchange, weak task] in
      // The answer is given before the task is cancelled, or the caller would get the error of the cancellation.
      exchange?.answer.give(.failure(.timedOut(host: exchange?.host ?? "", after: timeout)))
      if let task { Self.cancel(task) }
    }
    task.resume()
    // Not `session.data(for:)`: on Linux its cancellation waits for the session's queue while it holds the lock of the Swift task. That
    // queue may need the lock to resume the task, and both wait for ever (seen with Swift 6.3.1). So another queue cancels the task.
    return try await withTaskCancellationHandler {
      await exchange.answer.result()
    } onCancel: {
      exchange.answer.give(.failure(.cancelled))
      Self.cancel(task)
    }.get()
  }

  /// Cancels a task without waiting.
  fileprivate static func cancel(_ task: URLSessionTask) { cancellations.async { task.cancel() } }
}

/// One HTTP request in flight, with the part of the body that has arrived.
private final class Exchange: Sendable {
  let answer = FirstAnswer<Result<TransportResponse, TransportError>>()
  let host: String
  private let schemes: Set<String?>
  private let redirections: Mutex<Int>
  private let bodyLimit: Int
  private let body = Mutex(Data())

  init(_ url: URL?, redirections: Int, bodyLimit: Int) {
    host = url?.host() ?? "the server"
    // https is always allowed. http is allowed only if the request used it, so that no redirection drops the encryption.
    schemes = [url?.scheme?.lowercased(), "https"]
    self.redirections = Mutex(redirections)
    self.bodyLimit = bodyLimit
  }

  /// Returns true if a redirection to `url` is allowed, and counts it.
  func follows(_ url: URL?) -> Bool {
    redirections.withLock { left in
      left -= 1
      return left >= 0 && schemes.contains(url?.scheme?.lowercased())
    }
  }

  /// Appends a piece of the body, or returns false if the body is over its limit.
  func append(_ piece: Data, of response: URLResponse?) -> Bool {
    let fits = body.withLock { body in
      // The announced length stops a large download at its first piece. It is -1 where the server sends none.
      guard piece.count <= bodyLimit - body.count, response?.expectedContentLength ?? 0 <= Int64(bodyLimit) else { return false }
      body.append(piece)
      return true
    }
    if !fits { answer.give(.failure(.tooLarge(host: host, limit: bodyLimit))) }
    return fits
  }

  func end(_ response: URLResponse?, _ error: (any Error)?) {
    guard error == nil, let response = response as? HTTPURLResponse else {
      let code = (error as NSError?)?.code ?? NSURLErrorBadServerResponse
      // On Linux an answer that breaks off ends with `NSURLErrorUnknown`.
      let isCutOff = response != nil && code == NSURLErrorUnknown
      return answer.give(.failure(.unreachable(host: host, code: isCutOff ? NSURLErrorNetworkConnectionLost : code)))
    }
    let isRecorded = response.value(forHTTPHeaderField: "X-Weather-Recorded") != nil
    let retryAfter = response.value(forHTTPHeaderField: "Retry-After").flatMap { RetryAfter.wait($0, at: Date()) }
    answer.give(
      .success(
        TransportResponse(status: response.statusCode, body: body.withLock { $0 }, isRecorded: isRecorded, retryAfter: retryAfter)))
  }
}

/// The delegate of a URLSession.
///
/// It passes each callback to the exchange of its task.
private final class Exchanges: NSObject, URLSessionDataDelegate, Sendable {
  private let exchanges = Mutex<[Int: Exchange]>([:])

  func add(_ exchange: Exchange, of task: URLSessionTask) { exchanges.withLock { $0[task.taskIdentifier] = exchange } }

  func remove(_ task: URLSessionTask) { _ = exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) } }

  private func exchange(of task: URLSessionTask) -> Exchange? { exchanges.withLock { $0[task.taskIdentifier] } }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    // `nil` makes the redirection itself the answer, so that its status reaches the caller.
    completionHandler(exchange(of: task)?.follows(request.url) == true ? request : nil)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    if exchange(of: dataTask)?.append(data, of: dataTask.response) == false { URLSessionTransport.cancel(dataTask) }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    exchange(of: task)?.end(task.response, error)
  }
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
