import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The network, through URLSession without cookies and without a cache of its own: freshness is the app's business.
public struct URLSessionTransport: Transport {
  private let session: URLSession
  private let exchanges = Exchanges()
  private let bodyLimit: Int

  /// Makes a transport.
  ///
  /// - Parameter bodyLimit: The most bytes of an answer to ``get(_:)``: 8 MiB by default.
  public init(bodyLimit: Int = 8 << 20) {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: nil)
    self.bodyLimit = bodyLimit
  }

  /// Fetches a URL.
  ///
  /// The whole answer must be there within the time limit, and one that is too large is given up. At most five redirections are followed,
  /// none to another scheme than https, and none of a request with header fields.
  public nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    var urlRequest = URLRequest(url: request.url)
    for (name, value) in request.headers { urlRequest.setValue(value, forHTTPHeaderField: name) }
    // A redirection would take the header fields along to another host, and with them a token.
    return try await send(urlRequest, redirections: request.headers.isEmpty ? 5 : 0, bodyLimit: bodyLimit, timeout: request.timeout)
  }

  /// Sends a request, and returns when the answer is there, the time is up, or the caller is cancelled.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - redirections: How many are followed. The next one is an answer like any other.
  ///   - bodyLimit: The most bytes of the body.
  ///   - timeout: How long the whole answer may take.
  nonisolated(nonsending) func send(
    _ request: URLRequest, redirections: Int, bodyLimit: Int, timeout: Duration
  ) async throws(TransportError) -> TransportResponse {
    var request = request
    // URLSession's own limit is for a pause between two packets; the one below is for the whole answer, and comes first.
    request.timeoutInterval = timeout / .seconds(1) + 60
    let exchange = Exchange(request.url, redirections: redirections, bodyLimit: bodyLimit)
    let task = session.dataTask(with: request)
    exchanges.add(exchange, of: task)
    defer { exchanges.remove(task) }
    // Weak, or every body would stay in memory until its time is up.
    DispatchQueue.global().asyncAfter(deadline: .now() + timeout / .seconds(1)) { [weak exchange, weak task] in
      exchange?.answer.give(.failure(.timedOut(host: exchange?.host ?? "", after: timeout)))
      task?.cancel()
    }
    task.resume()
    // Not `session.data(for:)`: on Linux its cancellation waits for the session's queue while it holds the lock of the Swift task, which
    // that queue may want in order to resume the task, and then both wait for ever (seen with Swift 6.3.1). So cancel from elsewhere.
    return try await withTaskCancellationHandler {
      await exchange.answer.result()
    } onCancel: {
      exchange.answer.give(.failure(.cancelled))
      DispatchQueue.global().async { task.cancel() }
    }.get()
  }
}

/// A request under way, and its body so far.
private final class Exchange: Sendable {
  let answer = FirstAnswer<Result<TransportResponse, TransportError>>()
  let host: String
  private let schemes: Set<String?>
  private let redirections: Mutex<Int>
  private let bodyLimit: Int
  private let body = Mutex(Data())

  init(_ url: URL?, redirections: Int, bodyLimit: Int) {
    host = url?.host() ?? "the server"
    schemes = [url?.scheme?.lowercased(), "https"]
    self.redirections = Mutex(redirections)
    self.bodyLimit = bodyLimit
  }

  /// Returns whether one more redirection is followed.
  func follows(_ url: URL?) -> Bool {
    redirections.withLock { left in
      left -= 1
      return left >= 0 && schemes.contains(url?.scheme?.lowercased())
    }
  }

  /// Returns false when the body is too large.
  func append(_ piece: Data, of response: URLResponse?) -> Bool {
    let fits = body.withLock { body in
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
      // On Linux an answer that is cut off ends with an unknown error.
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

/// The delegate of a session: tells each exchange what comes of it.
private final class Exchanges: NSObject, URLSessionDataDelegate, Sendable {
  private let exchanges = Mutex<[Int: Exchange]>([:])

  func add(_ exchange: Exchange, of task: URLSessionTask) { exchanges.withLock { $0[task.taskIdentifier] = exchange } }

  func remove(_ task: URLSessionTask) { _ = exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) } }

  private func exchange(of task: URLSessionTask) -> Exchange? { exchanges.withLock { $0[task.taskIdentifier] } }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(exchange(of: task)?.follows(request.url) == true ? request : nil)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    if exchange(of: dataTask)?.append(data, of: dataTask.response) == false { dataTask.cancel() }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    exchange(of: task)?.end(task.response, error)
  }
}
