public import Foundation
public import Larder

/// Error of a request to a weather service that brought no usable answer.
public enum ProviderError: RemoteSourceError, Hashable, Codable {
  /// The transport failed before a complete response arrived.
  case network(TransportError)
  /// The service refuses the request, and would refuse it again.
  case rejected(status: Int, reason: String)
  /// The service does not accept the credentials.
  case unauthorized(reason: String)
  /// The service has no data for this place, and none are expected soon.
  case noCoverage
  /// The service does not offer this kind of data at all, or not in this country.
  case unsupported
  /// The service limits the number of requests.
  ///
  /// `retryAfter` is the wait that the service named. Without it the window says when the next request may succeed.
  case rateLimited(RateWindow, retryAfter: Duration?, reason: String)
  /// The service failed with a status of 500 or more.
  ///
  /// `retryAfter` is the wait that the service named, if any.
  case serviceFailed(status: Int, retryAfter: Duration? = nil)
  /// The response is not from the service, such as the HTML page of a proxy.
  case notJSON(status: Int)
  /// The answer was cut off before its end.
  case interrupted
  /// A column of the answer is in another unit than the requested one.
  case unexpectedUnit(column: String, unit: String)
  /// The answer is JSON of another shape than documented.
  case malformed(String)
  /// The answer does not match the request, such as one for another number of places.
  case mismatched(String)
  /// The configuration allows no request, such as a key file that others can read.
  case misconfigured(String)
  /// No request was sent, because an earlier failure put the host, the key or the sea on hold.
  ///
  /// `wait` is the time until the hold ends.
  case notAsked(WeatherProblem, wait: Duration)

  /// Whether the same request may succeed later without a change here.
  public var isTransient: Bool {
    switch self {
    // A proxy's sign-in page (`notJSON`) is gone after the sign-in, and a stream that broke off (`interrupted`) may be whole next time.
    case .network, .rateLimited, .serviceFailed, .notJSON, .interrupted, .notAsked: true
    case .rejected, .unauthorized, .noCoverage, .unsupported, .unexpectedUnit, .malformed, .mismatched, .misconfigured: false
    }
  }

  /// Wait until the next request may succeed, or `nil` if it is not known.
  public var retryAfter: Duration? {
    switch self {
    case .rateLimited(_, let wait, _), .serviceFailed(_, let wait): wait
    case .notAsked(_, let wait): wait
    default: nil
    }
  }

  /// Whether the error counts as a failure of the service for its circuit breaker.
  ///
  /// An error because of one place counts too. Larder then divides the request, and each part that succeeds closes the breaker again.
  public var countsAgainstBreaker: Bool {
    switch self {
    // These errors are about one place or one kind of data. An open breaker would also hold back other places and other kinds.
    case .noCoverage, .unsupported, .unexpectedUnit: false
    default: isOfAnswer
    }
  }

  /// Whether a request for several places may have failed because of one of them, so that Larder divides it.
  ///
  /// False for a rate limit and for a service that named a wait, since dividing sends more requests. False also for errors that do not
  /// depend on the places.
  public var mayConcernOneKey: Bool {
    switch self {
    case .rateLimited, .serviceFailed(_, .some), .unauthorized, .unsupported, .unexpectedUnit, .mismatched: false
    // `network` includes timeouts and answers over the limit of bytes, and a request for fewer places has a shorter answer.
    case .network, .serviceFailed, .notJSON, .interrupted, .rejected, .noCoverage, .malformed, .misconfigured, .notAsked: isOfAnswer
    }
  }

  /// Whether a request was sent and failed, as opposed to no request at all.
  var isOfAnswer: Bool {
    switch self {
    // A cancelled request says nothing about the host. The other two were never sent.
    case .network(.cancelled), .notAsked, .misconfigured: false
    default: true
    }
  }

  /// Returns the error with a computed wait until its window ends, if it is a rate limit for which the service named no wait.
  func waitingUntilWindowEnds(at now: Date) -> ProviderError {
    // A wait that the service named is more exact than the end of a window.
    guard case .rateLimited(let window, nil, let reason) = self else { return self }
    return .rateLimited(window, retryAfter: .seconds(window.end(after: now).timeIntervalSince(now)), reason: reason)
  }
}

/// Window of a rate limit.
///
/// Open-Meteo sends no Retry-After, so the wait is computed from the window.
public enum RateWindow: Double, Codable, Sendable {
  /// A limit for each minute, each hour or each UTC day, or for requests at the same time, with its length in seconds.
  case minute = 60, hour = 3600, day = 86_400, concurrent = 1

  /// Creates the window that an error text of Open-Meteo names, or `nil` for other texts.
  init?(reason: String) {
    // Only the beginning of the text is compared, because the service has no code for its limits and may change the rest of the text.
    let beginnings = [("Minutely API", Self.minute), ("Hourly API", .hour), ("Daily API", .day), ("Too many concurrent", .concurrent)]
    guard let window = beginnings.first(where: { reason.hasPrefix($0.0) })?.1 else { return nil }
    self = window
  }

  /// Returns the end of the window that contains an instant.
  public func end(after instant: Date) -> Date {
    // Windows are aligned to the clock in UTC, which is how the service counts.
    Date(timeIntervalSince1970: (instant.timeIntervalSince1970 / rawValue).rounded(.down) * rawValue + rawValue)
  }
}

extension ProviderError: CustomStringConvertible {
  /// Description of the failure for a person, on one line.
  public var description: String {
    switch self {
    case .network(let error): error.description
    case .rejected(let status, let reason): "the weather service refused the request (\(status): \(reason))"
    case .unauthorized(let reason): "the weather service does not accept the key (\(reason))"
    case .noCoverage: "the weather service has no data for this place"
    case .unsupported: "the weather service does not offer this here"
    case .rateLimited(_, _, let reason): "the weather service limits requests (\(reason))"
    case .serviceFailed(let status, _): "the weather service failed (status \(status))"
    case .notJSON(let status): "expected JSON of the weather service, found something else (status \(status))"
    case .interrupted: "the answer of the weather service was cut off"
    // The unit is a text of the service, whose control characters could move the cursor of a terminal.
    case .unexpectedUnit(let column, let unit): "the weather service answered \(column) in \"\(Self.shown(unit))\""
    case .malformed(let what), .mismatched(let what): "the answer of the weather service cannot be read (\(what))"
    case .misconfigured(let what): what
    case .notAsked(let problem, _): problem.description
    }
  }

  /// Returns at most 40 characters of a text of the service, without control characters.
  private static func shown(_ text: String) -> String { String(text.prefix(40).filter { !$0.isNewline && $0 >= " " && $0 != "\u{7F}" }) }

  /// Description of the failure in two or three words.
  var summary: String {
    switch self {
    case .network(.timedOut): "server too slow"
    case .network(.tooLarge): "answer too large"
    case .network: "server unreachable"
    case .rejected, .unauthorized: "server refused"
    case .noCoverage: "no data here"
    case .unsupported: "not offered here"
    case .rateLimited: "server limits requests"
    case .serviceFailed: "server failed"
    case .notJSON: "not the service"
    case .interrupted: "answer cut off"
    case .unexpectedUnit, .malformed, .mismatched: "unreadable answer"
    case .misconfigured: "not configured"
    case .notAsked(let problem, _): problem.summary
    }
  }
}
