// Network/ sends requests: a GET behind a protocol for the providers, and URLSession behind it, which images and webhooks use too.
// Invariant: every request has a limit of time for the whole answer and one of bytes, and ends as soon as its caller is cancelled.

public import Foundation

/// A way to fetch a URL: URLSession in the app, recorded answers in tests.
public protocol Transport: Sendable {
  /// Fetches a URL within a time limit. An answer with an error status is an answer and not an error.
  nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse
}

/// A GET.
public struct TransportRequest: Sendable {
  /// The requested URL.
  public var url: URL
  /// Header fields.
  public var headers: [String: String]
  /// The time limit of the whole answer.
  public var timeout: Duration

  /// Makes a request.
  public init(_ url: URL, headers: [String: String] = [:], timeout: Duration) {
    self.url = url
    self.headers = headers
    self.timeout = timeout
  }
}

/// The parts of an HTTP answer that matter here.
public struct TransportResponse: Sendable {
  /// The HTTP status.
  public var status: Int
  /// The whole body.
  public var body: Data
  /// Whether the answer was recorded earlier and dated anew, which the stand-in server says in its header `X-Weather-Recorded`.
  public var isRecorded: Bool
  /// The time to wait that the service asks for in its header `Retry-After`.
  public var retryAfter: Duration?

  /// Makes an answer.
  public init(status: Int, body: Data, isRecorded: Bool = false, retryAfter: Duration? = nil) {
    self.status = status
    self.body = body
    self.isRecorded = isRecorded
    self.retryAfter = retryAfter
  }
}

/// The reason why a request has no answer.
public enum TransportError: Error, Hashable, Codable, CustomStringConvertible {
  /// The host did not answer in time.
  case timedOut(host: String, after: Duration)
  /// The host cannot be reached; the number is the code of the URL loading system.
  case unreachable(host: String, code: Int)
  /// The answer is larger than this many bytes; no more of it was fetched.
  case tooLarge(host: String, limit: Int)
  /// The caller gave up.
  case cancelled

  /// The failure in plain words, on one line.
  public var description: String {
    switch self {
    case .timedOut(let host, let limit): "\(host) did not answer within \((limit / .seconds(1)).text(decimals: 1)) s"
    case .unreachable(let host, let code): "\(host) cannot be reached (\(Self.words(for: code)))"
    case .tooLarge(let host, let limit): "the answer of \(host) is larger than \(limit) bytes"
    case .cancelled: "cancelled"
    }
  }

  private static func words(for code: Int) -> String {
    switch code {
    case NSURLErrorCannotFindHost, NSURLErrorDNSLookupFailed: "unknown host; is there a network?"
    case NSURLErrorCannotConnectToHost: "connection refused"
    case NSURLErrorNotConnectedToInternet: "no network"
    case NSURLErrorNetworkConnectionLost: "the connection was lost"
    case NSURLErrorUnknown: "the connection broke off"
    case NSURLErrorSecureConnectionFailed, NSURLErrorServerCertificateUntrusted: "no secure connection"
    case NSURLErrorAppTransportSecurityRequiresSecureConnection: "App Transport Security allows no http; use https"
    default: "network error \(code)"
    }
  }
}
