public import Foundation
public import Larder

/// The reason why a weather service gave no usable answer.
public enum ProviderError: RemoteSourceError, Hashable, Codable {
  /// There is no answer.
  case network(TransportError)
  /// The service refuses the request and would do so again.
  case rejected(status: Int, reason: String)
  /// The service refuses who asks.
  case unauthorized(reason: String)
  /// The service has no data for this place, and will not have any soon.
  case noCoverage
  /// The service does not offer this kind of data at all, or not in this country.
  case unsupported
  /// Too many requests; the window says when the next one may succeed, unless the service did.
  case rateLimited(RateWindow, retryAfter: Duration?, reason: String)
  /// The service failed; it may say when to come back.
  case serviceFailed(status: Int, retryAfter: Duration? = nil)
  /// Something other than the service answered, such as a page of a proxy.
  case notJSON(status: Int)
  /// The answer ends in its middle.
  case interrupted
  /// The answer is in another unit than the one asked for.
  case unexpectedUnit(column: String, unit: String)
  /// The answer is JSON of another shape.
  case malformed(String)
  /// The answer does not fit the request, such as one for another number of places.
  case mismatched(String)
  /// The service cannot be asked with what is configured, such as a key file that others can read.
  case misconfigured(String)
  /// No request was made, because of what was learnt before: the host is out, has refused this, or has asked for time, which may be over
  /// after so long.
  case notAsked(WeatherProblem, wait: Duration)

  /// Whether the same request may succeed later.
  public var isTransient: Bool {
    switch self {
    case .network, .rateLimited, .serviceFailed, .notJSON, .interrupted, .notAsked: true
    case .rejected, .unauthorized, .noCoverage, .unsupported, .unexpectedUnit, .malformed, .mismatched, .misconfigured: false
    }
  }

  /// The time to wait until the next request, where that is known.
  public var retryAfter: Duration? {
    switch self {
    case .rateLimited(_, let wait, _), .serviceFailed(_, let wait): wait
    case .notAsked(_, let wait): wait
    default: nil
    }
  }

  /// Whether the failure shows that the service is in trouble or refuses whoever asks.
  ///
  /// A place that is refused for itself counts too: the halves of its request that are answered close the breaker again.
  public var countsAgainstBreaker: Bool {
    switch self {
    case .noCoverage, .unsupported, .unexpectedUnit: false
    default: isOfAnswer
    }
  }

  /// Whether a request for several places that failed so may succeed without one of them.
  ///
  /// A limit of requests is no reason for more of them, and neither is a service that asks for time or ignores the places.
  public var mayConcernOneKey: Bool {
    switch self {
    case .rateLimited, .serviceFailed(_, .some), .unauthorized, .unsupported, .unexpectedUnit, .mismatched: false
    case .network, .serviceFailed, .notJSON, .interrupted, .rejected, .noCoverage, .malformed, .misconfigured, .notAsked: isOfAnswer
    }
  }

  /// Whether this is the outcome of a request, and not the reason why there was none.
  var isOfAnswer: Bool {
    switch self {
    case .network(.cancelled), .notAsked, .misconfigured: false
    default: true
    }
  }

  /// Returns the same error, with the wait until the window ends where the service did not say how long to wait.
  func waitingUntilWindowEnds(at now: Date) -> ProviderError {
    guard case .rateLimited(let window, nil, let reason) = self else { return self }
    return .rateLimited(window, retryAfter: .seconds(window.end(after: now).timeIntervalSince(now)), reason: reason)
  }
}

/// The window of a request limit; Open-Meteo sends no Retry-After.
public enum RateWindow: Hashable, Codable, Sendable {
  /// Over with the minute, hour or UTC day; or too many at once.
  case minute, hour, day, concurrent

  /// Makes the window that an error text speaks of, or `nil` for other texts.
  init?(reason: String) {
    if reason.hasPrefix("Minutely API") {
      self = .minute
    } else if reason.hasPrefix("Hourly API") {
      self = .hour
    } else if reason.hasPrefix("Daily API") {
      self = .day
    } else if reason.hasPrefix("Too many concurrent") {
      self = .concurrent
    } else {
      return nil
    }
  }

  /// Returns when the window that an instant lies in is over.
  public func end(after instant: Date) -> Date {
    let length: Double =
      switch self {
      case .minute: 60
      case .hour: 3600
      case .day: 86400
      case .concurrent: 1
      }
    return Date(timeIntervalSince1970: (instant.timeIntervalSince1970 / length).rounded(.down) * length + length)
  }
}

extension ProviderError: CustomStringConvertible {
  /// The failure in plain words, on one line.
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
    case .unexpectedUnit(let column, let unit): "the weather service answered \(column) in \"\(Self.shown(unit))\""
    case .malformed(let what), .mismatched(let what): "the answer of the weather service cannot be read (\(what))"
    case .misconfigured(let what): what
    case .notAsked(let problem, _): problem.description
    }
  }

  /// Returns a text of the service as a terminal can show it.
  private static func shown(_ text: String) -> String { String(text.prefix(40).filter { !$0.isNewline && $0 >= " " && $0 != "\u{7F}" }) }

  /// The failure in two or three words.
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
