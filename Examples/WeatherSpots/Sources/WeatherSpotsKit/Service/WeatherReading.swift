public import Foundation
public import Larder

/// Result of reading one kind of data, with its value and age or the reason why there is none.
///
/// Show `noCoverage` as a fact and `unavailable` as a failure. An absence is cached for days, and a failed request is tried again within
/// minutes.
public enum WeatherReading<Value: Sendable>: Sendable {
  /// Data with their age.
  ///
  /// ``Cached/refreshError`` is the reason if a newer answer could not be fetched.
  case available(Cached<Value>)
  /// The service has no data for this place.
  case noCoverage(since: Date)
  /// The provider does not offer this kind of data here.
  case unsupported
  /// The data could not be fetched, and no usable data are stored.
  case unavailable(WeatherProblem)

  /// Value of available data, or `nil` without data.
  public var value: Value? { cached?.value }

  /// Value with its age, or `nil` without data.
  public var cached: Cached<Value>? { if case .available(let cached) = self { cached } else { nil } }

  /// Reason why the data are missing or could not be refreshed.
  public var problem: WeatherProblem? {
    switch self {
    case .available(let cached): cached.refreshError.map(WeatherProblem.init)
    case .unavailable(let problem): problem
    case .noCoverage, .unsupported: nil
    }
  }

  /// Whether no request is needed, because the data are fresh or the service has none.
  var isFresh: Bool {
    switch self {
    case .available(let cached): !cached.isOld
    case .noCoverage, .unsupported: true
    case .unavailable: false
    }
  }
}

/// A failure in words for a person.
public struct WeatherProblem: Error, Hashable, Codable, CustomStringConvertible {
  /// Description of the failure, on one line.
  public let description: String
  /// Description of the failure in two or three words, for narrow places.
  public let summary: String
  /// Whether the same request may succeed later without a change here.
  public let isTransient: Bool
  /// True if no request was sent, else `nil`, which is also how stores of older versions decode.
  private let notAsked: Bool?

  /// Whether a request was sent and failed, as opposed to no request at all.
  public var isOfAnswer: Bool { notAsked != true }

  /// Creates the description of an error.
  public init(_ error: any Error) {
    switch error {
    case let problem as WeatherProblem: self = problem
    case let error as ProviderError:
      self.init(error.description, error.summary, isTransient: error.isTransient, isOfAnswer: error.isOfAnswer)
    case CacheError.circuitOpen(let until):
      self.init("the weather service failed several times; next request at \(Self.time(until))", "server failed", isOfAnswer: false)
    case CacheError.quotaExceeded(let until):
      self.init("request quota exhausted until \(Self.time(until))", "quota exhausted", isOfAnswer: false)
    case CacheError.timedOut(let limit): self.init("no answer within \((limit / .seconds(1)).text(decimals: 1)) s", "server too slow")
    case CacheError.notCached: self = .notStored
    case is CancellationError: self.init("cancelled", "cancelled")
    case let error as RepositoryError: self.init("the store failed (\(error.code))", "store failed", isTransient: false)
    // The type only: the text of an unknown error may be long or have several lines.
    default: self.init("an unexpected failure (\(type(of: error)))", "failed", isTransient: false)
    }
  }

  /// Problem of a read with the policy `cacheOnly` that found no usable data.
  public static let notStored = WeatherProblem("not cached (policy: cache only)", "not stored", isTransient: false, isOfAnswer: false)

  /// Creates a problem from a description of one line and a summary of two or three words.
  public init(_ description: String, _ summary: String, isTransient: Bool = true, isOfAnswer: Bool = true) {
    self.description = description
    self.summary = summary
    self.isTransient = isTransient
    notAsked = isOfAnswer ? nil : true
  }

  private static func time(_ date: Date) -> String { date.formatted(.iso8601) }
}
