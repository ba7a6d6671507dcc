// Network/ sends HTTP requests. Providers use a GET behind a protocol. URLSession serves that protocol, the images and the webhooks.
// Invariant: every request has a time limit for the whole answer and a limit of bytes, and ends as soon as its caller is cancelled.

public import Foundation

/// A way to fetch a URL: URLSession in the app, recorded answers in tests.
public protocol Transport: Sendable {
  /// Fetches a URL within the time limit of the request.
  ///
  /// An answer with an error status is returned and not thrown.
  nonisolated(nonsending) func get(_ request: TransportRequest) async throws(TransportError) -> TransportResponse
}

/// An HTTP GET request with header fields and a time limit.
public struct TransportRequest: Sendable {
  /// URL to fetch.
  public var url: URL
  /// Header fields by name.
  public var headers: [String: String]
  /// Time limit for the whole answer, its body included.
  public var timeout: Duration

  /// Makes a request.
  public init(_ url: URL, headers: [String: String] = [:], timeout: Duration) {
    self.url = url
    self.headers = headers
    self.timeout = timeout
  }
}

/// An HTTP response, reduced to its status, its body and two header fields.
public struct TransportResponse: Sendable {
  /// HTTP status code.
  public var status: Int
  /// Complete body.
  public var body: Data
  /// Whether the stand-in server replayed a recorded answer with new dates, as its header `X-Weather-Recorded` says.
  public var isRecorded: Bool
  /// Time to wait that the server asks for in its header `Retry-After`.
  public var retryAfter: Duration?

  /// Makes a response.
  public init(status: Int, body: Data, isRecorded: Bool = false, retryAfter: Duration? = nil) {
    self.status = status
    self.body = body
    self.isRecorded = isRecorded
    self.retryAfter = retryAfter
  }
}

/// A failure of the network: the request has no complete answer.
public enum TransportError: Error, Hashable, Codable, CustomStringConvertible {
  /// The complete answer did not arrive within the time limit.
  case timedOut(host: String, after: Duration)
  /// The host cannot be reached, or the connection broke off.
  ///
  /// The code is an `NSURLError` of the URL loading system.
  case unreachable(host: String, code: Int)
  /// The answer is larger than `limit` bytes.
  ///
  /// The rest was not fetched.
  case tooLarge(host: String, limit: Int)
  /// The calling task was cancelled.
  case cancelled

  /// Description of the failure on one line, for people.
  public var description: String {
    switch self {
    case .timedOut(let host, let limit): "\(host) did not answer within \((limit / .seconds(1)).text(decimals: 1)) s"
    case .unreachable(let host, let code): "\(host) cannot be reached (\(Self.words(for: code)))"
    case .tooLarge(let host, let limit): "the answer of \(host) is larger than \(limit) bytes"
    case .cancelled: "cancelled"
    }
  }

  private static func words(for code: Int) -> String {
    // Own words: `localizedDescription` differs by platform and language, and may be several lines.
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
