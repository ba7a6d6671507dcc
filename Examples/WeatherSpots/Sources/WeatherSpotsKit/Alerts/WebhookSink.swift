public import Foundation
public import Larder

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A sink that sends each notice to a server: a POST of JSON with the key in the header `Idempotency-Key`.
///
/// Delivery is at least once. A notice that is not accepted with a 2xx status is sent again until its warning expires. If the answer is
/// lost, or this program is killed before it stores the success, the receiver gets the notice again with the same key and
/// `may_be_repeat`. To process each notice exactly once, the receiver must store the keys that it has accepted. No sender can promise
/// that alone.
public final class WebhookSink: AlertSink {
  /// Name of the sink: `webhook:`, the host, and the beginning of a hash of the URL.
  ///
  /// One URL always has one name, and the name holds no secret of the URL.
  public let name: String
  /// One notice in each call, since each is a request of its own.
  public var batchLimit: Int { 1 }
  private let url: URL
  private let timeout: Duration
  private let retry: RetryPolicy
  private let clock: any WallClock
  private let transport = URLSessionTransport()

  /// Makes a sink.
  ///
  /// - Parameters:
  ///   - url: URL that notices are posted to.
  ///   - timeout: Time limit for an attempt, its answer included.
  ///   - retry: Immediate retries after a transient failure. Later retries are scheduled by the queue.
  ///   - clock: Clock for the waits.
  public init(_ url: URL, timeout: Duration = .seconds(10), retry: RetryPolicy = .default, clock: any WallClock = SystemClock()) {
    self.url = url
    self.timeout = timeout
    self.retry = retry
    self.clock = clock
    name = Self.name(of: url)
  }

  /// Returns the name of the sink for a URL.
  ///
  /// The name is part of the key of every notice. If the name of a URL changed, watchers would get their notices again. If two URLs shared
  /// a name, a notice delivered to one would count as delivered to the other.
  private static func name(of url: URL) -> String {
    var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
    // A new password does not make a new receiver, and a fragment is never sent.
    parts?.password = nil
    parts?.fragment = nil
    var hash = FieldHash()
    hash.add(parts?.string ?? url.absoluteString)
    return "webhook:\(url.host() ?? "")#\(hash.hexadecimal.prefix(12))"
  }

  /// Posts each notice, and retries transient failures at once.
  public func deliver(_ notices: [AlertDelivery]) async throws(SinkError) {
    for notice in notices {
      let body = try notice.json(marksRepeats: true)
      var attempt = 1
      while true {
        do throws(Refusal) {
          try await post(body, notice.key)
          break
        } catch {
          guard let wait = delay(after: attempt, error) else { throw error.error }
          // A sleep ends early only through a cancellation, after which no attempt may follow.
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
    // A longer wait than the cap is left to the queue: waiting here would delay the whole round.
    if let wanted = refusal.error.retryAfter { return wanted <= retry.cap ? wanted : nil }
    // Random from zero, so that senders that failed together spread. The shift is capped so that it cannot overflow.
    return min(retry.cap, retry.base * (1 << min(attempt - 1, 20))) * Double.random(in: 0..<1)
  }

  private func post(_ body: Data, _ key: NoticeKey) async throws(Refusal) {
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    request.httpBody = body
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.setValue(key.rawValue, forHTTPHeaderField: "Idempotency-Key")
    let response: TransportResponse
    do throws(TransportError) {
      // No redirection: it would turn the POST into a GET, whose 200 does not mean that the notice has arrived.
      response = try await transport.send(request, redirections: 0, bodyLimit: 8 << 20, timeout: timeout)
    } catch {
      switch error {
      case .cancelled: throw Refusal(error: SinkError("cancelled"), isTransient: false)
      // Without a connection nothing was sent. After any other failure the notice may have arrived.
      case .unreachable(_, NSURLErrorCannotConnectToHost), .unreachable(_, NSURLErrorCannotFindHost):
        throw Refusal(error: SinkError("the webhook at \(error)", tookNothing: true), isTransient: true)
      case .unreachable, .timedOut, .tooLarge: throw Refusal(error: SinkError("the webhook at \(error)"), isTransient: true)
      }
    }
    guard !(200..<300).contains(response.status) else { return }
    // 408 (timeout), 425 (too early) and 429 (too many requests) may pass. Other 4xx would fail again at once.
    let isTransient = [408, 425, 429].contains(response.status) || response.status >= 500
    throw Refusal(error: SinkError("the webhook answers \(response.status)", retryAfter: response.retryAfter), isTransient: isTransient)
  }
}
