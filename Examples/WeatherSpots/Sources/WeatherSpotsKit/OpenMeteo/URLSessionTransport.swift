import Synchronization

// The session's configuration is public, and lives in another module on Linux.
#if canImport(FoundationNetworking)
  import Foundation
  public import FoundationNetworking
#else
  public import Foundation
#endif

/// The network, through URLSession without cookies and without a cache of its own: freshness is the app's business.
public struct URLSessionTransport: Transport {
  let session: URLSession
  /// The session's delegate, for bodies that are taken piece by piece.
  let bodies = SessionBodies()

  /// Makes a transport; a test of an app may give a configuration whose `protocolClasses` answer.
  public init(configuration: URLSessionConfiguration = .ephemeral) {
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    session = URLSession(configuration: configuration, delegate: bodies, delegateQueue: nil)
  }

  /// Fetches a URL; the whole answer must be there within the time limit.
  public nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    let host = request.url.host() ?? "the server"
    let timeout = request.timeout
    let answer = FirstAnswer()
    var urlRequest = URLRequest(url: request.url)
    for (name, value) in request.headers { urlRequest.setValue(value, forHTTPHeaderField: name) }
    let task = session.dataTask(with: urlRequest) { body, response, error in
      answer.give(Self.result(body, response, error, host: host))
    }
    // A redirect would take the header fields along to another host, and with them a token.
    if !request.headers.isEmpty { task.delegate = RedirectRefusal() }
    return try await run(task, answer, timedOut: .timedOut(host: host, after: timeout), after: timeout).get()
  }

  /// Runs a task until somebody gives an answer, the time is up, or the caller is cancelled.
  nonisolated(nonsending) func run(
    _ task: URLSessionDataTask, _ answer: FirstAnswer, timedOut: TransportError, after timeout: Duration
  ) async -> Result<TransportResponse, TransportError> {
    // URLSession's own limit is for a pause between two packets; this one is for the whole answer.
    DispatchQueue.global().asyncAfter(deadline: .now() + timeout / .seconds(1)) {
      answer.give(.failure(timedOut))
      task.cancel()
    }
    task.resume()
    // Not `session.data(for:)`: on Linux its cancellation waits for the session's queue while it holds the lock of the Swift task, which
    // that queue may want in order to resume the task, and then both wait for ever (seen with Swift 6.3.1). So cancel from elsewhere.
    return await withTaskCancellationHandler {
      await answer.result()
    } onCancel: {
      DispatchQueue.global().async {
        answer.give(.failure(.cancelled))
        task.cancel()
      }
    }
  }

  static func result(
    _ body: Data?, _ response: URLResponse?, _ error: (any Error)?, host: String
  ) -> Result<TransportResponse, TransportError> {
    guard let body, let response = response as? HTTPURLResponse else {
      return .failure(.unreachable(host: host, code: (error as NSError?)?.code ?? NSURLErrorBadServerResponse))
    }
    let isRecorded = response.value(forHTTPHeaderField: "X-Weather-Recorded") != nil
    let retryAfter = response.value(forHTTPHeaderField: "Retry-After").flatMap { RetryAfter.wait($0, at: Date()) }
    return .success(TransportResponse(status: response.statusCode, body: body, isRecorded: isRecorded, retryAfter: retryAfter))
  }
}

/// Takes a redirect for the answer that it is, instead of following it.
private final class RedirectRefusal: NSObject, URLSessionTaskDelegate {
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) { completionHandler(nil) }
}

/// The first of several results that race for one waiter; later ones are dropped.
final class FirstAnswer: Sendable {
  private typealias Value = Result<TransportResponse, TransportError>

  private enum State {
    case open
    case waiting(CheckedContinuation<Value, Never>)
    case given(Value)
  }
  private let state = Mutex(State.open)

  func give(_ value: Result<TransportResponse, TransportError>) {
    let waiter: CheckedContinuation<Value, Never>? = state.withLock { state in
      defer { if case .given = state {} else { state = .given(value) } }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    waiter?.resume(returning: value)
  }

  func result() async -> Result<TransportResponse, TransportError> {
    await withCheckedContinuation { continuation in
      let value: Value? = state.withLock { state in
        if case .given(let value) = state { return value }
        state = .waiting(continuation)
        return nil
      }
      if let value { continuation.resume(returning: value) }
    }
  }
}
