public import Foundation
public import Larder

/// One kind of data as it is known now.
///
/// That a service has no data for a place and that it could not be asked are different things: the first is kept for days and shown as a
/// fact, the second is tried again in minutes and shown as a failure.
public enum WeatherReading<Value: Sendable>: Sendable {
  /// The data with their age; ``Cached/refreshError`` says why they are not newer.
  case available(Cached<Value>)
  /// The service has no data for this place.
  case noCoverage(since: Date)
  /// The provider does not offer this kind of data here.
  case unsupported
  /// The data could not be fetched, and none that may be shown are stored.
  case unavailable(WeatherProblem)

  /// The data, where there are any.
  public var value: Value? { cached?.value }

  /// The data with their age, where there are any.
  public var cached: Cached<Value>? { if case .available(let cached) = self { cached } else { nil } }

  /// The reason why the data are missing, or not newer.
  public var problem: WeatherProblem? {
    switch self {
    case .available(let cached): cached.refreshError.map(WeatherProblem.init)
    case .unavailable(let problem): problem
    case .noCoverage, .unsupported: nil
    }
  }

  /// Whether a request would bring nothing newer.
  var isFresh: Bool {
    switch self {
    case .available(let cached): !cached.isOld
    case .noCoverage, .unsupported: true
    case .unavailable: false
    }
  }
}

/// A failure of the weather as it is shown.
public struct WeatherProblem: Error, Hashable, Codable, CustomStringConvertible {
  /// A description of the failure, on one line.
  public let description: String
  /// The same in two or three words, for where there is little room.
  public let summary: String
  /// Whether the data may be there later without anything being changed here.
  public let isTransient: Bool
  /// `nil` unless no request was made, which older versions do not know.
  private let notAsked: Bool?

  /// Whether this is the outcome of a request, and not the reason why there was none.
  public var isOfAnswer: Bool { notAsked != true }

  /// Says what an error means for a reader.
  public init(_ error: any Error) {
    switch error {
    case let problem as WeatherProblem: self = problem
    case let error as ProviderError:
      self.init(error.description, error.summary, isTransient: error.isTransient, isOfAnswer: error.isOfAnswer)
    case CacheError.circuitOpen(let until):
      self.init(
        "the weather service failed several times; next request at \(Self.time(until))", "server failed", isOfAnswer: false)
    case CacheError.quotaExceeded(let until):
      self.init("request quota exhausted until \(Self.time(until))", "quota exhausted", isOfAnswer: false)
    case CacheError.timedOut(let limit): self.init("no answer within \((limit / .seconds(1)).text(decimals: 1)) s", "server too slow")
    case CacheError.notCached: self = .notStored
    case is CancellationError: self.init("cancelled", "cancelled")
    case let error as RepositoryError: self.init("the store failed (\(error.code))", "store failed", isTransient: false)
    default: self.init("an unexpected failure (\(type(of: error)))", "failed", isTransient: false)
    }
  }

  /// Nothing that may be shown is stored, and the caller has wanted no request.
  public static let notStored = WeatherProblem(
    "not cached (policy: cache only)", "not stored", isTransient: false, isOfAnswer: false)

  /// Says something in words of one line.
  public init(_ description: String, _ summary: String, isTransient: Bool = true, isOfAnswer: Bool = true) {
    self.description = description
    self.summary = summary
    self.isTransient = isTransient
    notAsked = isOfAnswer ? nil : true
  }

  private static func time(_ date: Date) -> String { date.formatted(.iso8601) }
}
