public import Foundation
public import Larder

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A server that is told of each notice by a POST of its JSON, with the key in the header `Idempotency-Key`.
///
/// What it promises: a notice that is not accepted with a 2xx is sent again, until its warning expires. If the answer is lost, or this
/// program is killed between the answer and the note of it, the notice is sent again although the receiver has it, with the same key and
/// `may_be_repeat`: at least once. A receiver that keeps the keys it has seen gets each exactly once; without that no sender can promise
/// it.
public final class WebhookSink: AlertSink {
  /// `webhook:`, the host, and the beginning of a hash of the URL: the same for the same URL, and nothing that may be secret.
  public let name: String
  /// One: each notice is a request of its own.
  public var batchLimit: Int { 1 }
  private let url: URL
  private let timeout: Duration
  private let retry: RetryPolicy
  private let clock: any WallClock
  private let transport = URLSessionTransport()

  /// Makes a sink.
  ///
  /// - Parameters:
  ///   - url: Where notices are posted.
  ///   - timeout: How long each attempt may take, with the answer.
  ///   - retry: How often a failure that may pass is tried again at once; after that the queue takes over.
  ///   - clock: The time for waiting.
  public init(_ url: URL, timeout: Duration = .seconds(10), retry: RetryPolicy = .default, clock: any WallClock = SystemClock()) {
    self.url = url
    self.timeout = timeout
    self.retry = retry
    self.clock = clock
    name = Self.name(of: url)
  }

  /// Returns the name of the sink for a URL.
  ///
  /// It is part of the key of every notice: should it change, watchers are told again what they were told; should two URLs share it, what
  /// one was told counts as told to the other.
  private static func name(of url: URL) -> String {
    var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
    // They do not say whom a notice is for, and a new password is no new receiver.
    parts?.password = nil
    parts?.fragment = nil
    var hash = FieldHash()
    hash.add(parts?.string ?? url.absoluteString)
    return "webhook:\(url.host() ?? "")#\(hash.hexadecimal.prefix(12))"
  }

  /// Posts each notice.
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
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    request.httpBody = body
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.setValue(key.rawValue, forHTTPHeaderField: "Idempotency-Key")
    let response: TransportResponse
    do throws(TransportError) {
      // No redirection: a POST would become a GET on the way, and its 200 would not mean that the notice has arrived.
      response = try await transport.send(request, redirections: 0, bodyLimit: 8 << 20, timeout: timeout)
    } catch {
      switch error {
      case .cancelled: throw Refusal(error: SinkError("cancelled"), isTransient: false)
      case .unreachable(_, NSURLErrorCannotConnectToHost), .unreachable(_, NSURLErrorCannotFindHost):
        throw Refusal(error: SinkError("the webhook at \(error)", tookNothing: true), isTransient: true)
      case .unreachable, .timedOut, .tooLarge: throw Refusal(error: SinkError("the webhook at \(error)"), isTransient: true)
      }
    }
    guard !(200..<300).contains(response.status) else { return }
    let isTransient = [408, 425, 429].contains(response.status) || response.status >= 500
    throw Refusal(error: SinkError("the webhook answers \(response.status)", retryAfter: response.retryAfter), isTransient: isTransient)
  }
}
