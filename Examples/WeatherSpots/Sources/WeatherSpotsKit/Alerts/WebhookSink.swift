public import Foundation
public import Larder
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A server that is told of each notice by a POST of its JSON, with the key in the header `Idempotency-Key`.
///
/// What it promises: a notice that is not accepted with a 2xx is sent again, until its warning expires. If the answer is lost, or this
/// program is killed between the answer and the note of it, the notice is sent again although the receiver has it, with the same key and
/// `may_be_repeat`: at least once. A receiver that keeps the keys it has seen gets each exactly once; without that nobody can promise it.
public final class WebhookSink: AlertSink {
  /// `webhook:` and the URL without what may be secret in it: user, password and query.
  public let name: String
  /// One: each notice is a request of its own.
  public var batchLimit: Int { 1 }
  private let url: URL
  private let timeout: TimeInterval
  private let retry: RetryPolicy
  private let clock: any WallClock
  private let session: URLSession

  /// Makes a sink.
  ///
  /// - Parameters:
  ///   - url: Where notices are posted.
  ///   - timeout: How long an answer may take.
  ///   - retry: How often a failure that may pass is tried again at once; after that the queue takes over.
  ///   - clock: The time for waiting.
  public init(_ url: URL, timeout: Duration = .seconds(10), retry: RetryPolicy = .default, clock: any WallClock = SystemClock()) {
    self.url = url
    self.timeout = timeout / .seconds(1)
    self.retry = retry
    self.clock = clock
    var shown = URLComponents(url: url, resolvingAgainstBaseURL: true)
    shown?.user = nil
    shown?.password = nil
    shown?.query = nil
    shown?.fragment = nil
    name = "webhook:\(shown?.string ?? "")"
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    session = URLSession(configuration: configuration)
  }

  /// Posts each notice.
  public func deliver(_ notices: [AlertDelivery]) async throws(SinkError) {
    for notice in notices {
      let body = try NoticeBody(notice, marksRepeats: true).json
      var attempt = 1
      while true {
        do throws(Refusal) {
          try await post(body, notice.key)
          break
        } catch {
          guard let wait = delay(after: attempt, error) else { throw error.error }
          do { try await clock.sleep(for: wait) } catch { throw SinkError("cancelled") }
          attempt += 1
        }
      }
    }
  }

  private struct Refusal: Error {
    let error: SinkError
    let isTransient: Bool
  }

  private func delay(after attempt: Int, _ refusal: Refusal) -> Duration? {
    guard attempt < retry.attempts, refusal.isTransient else { return nil }
    if let wanted = refusal.error.retryAfter { return wanted <= retry.cap ? wanted : nil }
    return min(retry.cap, retry.base * (1 << min(attempt - 1, 20))) * Double.random(in: 0..<1)
  }

  private func post(_ body: Data, _ key: NoticeKey) async throws(Refusal) {
    var request = URLRequest(url: url, timeoutInterval: timeout)
    request.httpMethod = "POST"
    request.httpBody = body
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.setValue(key.rawValue, forHTTPHeaderField: "Idempotency-Key")
    let (response, code) = await answer(to: request)
    guard let response else {
      let isRefused = code == NSURLErrorCannotConnectToHost || code == NSURLErrorCannotFindHost
      throw Refusal(error: SinkError("the webhook cannot be reached (\(code))", tookNothing: isRefused), isTransient: true)
    }
    guard !(200..<300).contains(response.statusCode) else { return }
    let retryAfter = response.value(forHTTPHeaderField: "Retry-After").flatMap { RetryAfter.wait($0, at: clock.now) }
    let isTransient = [408, 425, 429].contains(response.statusCode) || response.statusCode >= 500
    throw Refusal(error: SinkError("the webhook answers \(response.statusCode)", retryAfter: retryAfter), isTransient: isTransient)
  }

  /// The answer, or the code of why there is none.
  private func answer(to request: URLRequest) async -> (HTTPURLResponse?, Int) {
    await withCheckedContinuation { continuation in
      let task = session.dataTask(with: request) { _, response, error in
        continuation.resume(returning: (response as? HTTPURLResponse, (error as NSError?)?.code ?? NSURLErrorBadServerResponse))
      }
      task.delegate = Refusing.redirects
      task.resume()
    }
  }
}

/// Follows no redirection: a POST would become a GET on the way, and its 200 would not mean that anybody has the notice.
private final class Refusing: NSObject, URLSessionTaskDelegate {
  static let redirects = Refusing()

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }
}
