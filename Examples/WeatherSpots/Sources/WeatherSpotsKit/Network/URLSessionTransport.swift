// The session's configuration is public, and lives in another module on Linux.
#if canImport(FoundationNetworking)
  import Foundation
  public import FoundationNetworking
#else
  public import Foundation
#endif

/// The network, through URLSession without cookies and without a cache of its own: freshness is the app's business.
public struct URLSessionTransport: Transport {
  private let session: URLSession
  private let exchanges = Exchanges()
  private let bodyLimit: Int

  /// Makes a transport.
  ///
  /// - Parameters:
  ///   - configuration: A test of an app may give one whose `protocolClasses` answer.
  ///   - bodyLimit: The most bytes of an answer to ``get(_:)``: 8 MiB by default.
  public init(configuration: URLSessionConfiguration = .ephemeral, bodyLimit: Int = 8 << 20) {
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    session = URLSession(configuration: configuration, delegate: exchanges, delegateQueue: Self.queue)
    self.bodyLimit = bodyLimit
  }

  #if canImport(FoundationNetworking)
    private static var queue: OperationQueue? { InlineQueue() }
  #else
    private static var queue: OperationQueue? { nil }
  #endif

  /// Fetches a URL; the whole answer must be there within the time limit, and as soon as it is too large no more of it is fetched.
  ///
  /// At most five redirections to http and https are followed, and none with header fields.
  ///
  /// Beyond the limit may be fetched: on Linux the rest of the turn in which it was passed, at most 1.6 MB, and what the system keeps
  /// for a connection. Of an endless body a server on loopback got rid of 15 MiB with the limit of 8 MiB, and of 6 MiB if it said how
  /// long the body is. The body of a redirection is bounded by the time alone: the session keeps it, and tells nothing of it before its
  /// end.
  public nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    var urlRequest = URLRequest(url: request.url)
    for (name, value) in request.headers { urlRequest.setValue(value, forHTTPHeaderField: name) }
    // A redirection would take the header fields along to another host, and with them a token.
    let redirections = request.headers.isEmpty ? 5 : 0
    return try await send(urlRequest, redirections: redirections, timeout: request.timeout) { [bodyLimit] _ in bodyLimit }
  }

  /// Sends a request; returns when the answer is there, the time is up, or the caller is cancelled.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - redirections: How many are followed; the next one is taken for the answer that it is.
  ///   - timeout: How long the whole answer may take.
  ///   - bodyLimit: The most bytes of the body of an answer with a status, or `nil` when the status is all that is wanted.
  nonisolated(nonsending) func send(
    _ request: URLRequest, redirections: Int, timeout: Duration, bodyLimit: @escaping @Sendable (_ status: Int) -> Int?
  ) async throws(TransportError) -> TransportResponse {
    var request = request
    // URLSession's own limit is for a pause between two packets; the one below is for the whole answer, and comes first.
    request.timeoutInterval = timeout / .seconds(1) + 60
    let host = request.url?.host() ?? "the server"
    let exchange = Exchange(host: host, redirections: redirections, bodyLimit)
    let task = session.dataTask(with: request)
    exchanges.add(exchange, of: task)
    defer { exchanges.remove(task) }
    // Weak, or every body that has come would stay until its time was up.
    URLSession.later(timeout) { [weak exchange, weak task, weak session] in
      guard let exchange else { return }
      exchange.answer.give(.failure(.timedOut(host: host, after: timeout)))
      if let task { session?.stop(task) }
    }
    task.resume()
    // Not `session.data(for:)`: on Linux its cancellation waits for the session's queue while it holds the lock of the Swift task, which
    // that queue may want in order to resume the task, and then both wait for ever (seen with Swift 6.3.1). So cancel from elsewhere.
    return try await withTaskCancellationHandler {
      await exchange.answer.result()
    } onCancel: {
      URLSession.later(.zero) { [session] in
        exchange.answer.give(.failure(.cancelled))
        session.stop(task)
      }
    }.get()
  }
}
