public import Foundation

/// A service that has forecasts.
///
/// Nothing is kept here: a provider is asked and answers. What is kept for how long is the business of ``WeatherService``.
public protocol ForecastProvider: Sendable {
  /// The name that `--provider` takes.
  var name: String { get }
  /// The name that its data, absences and failures are kept under: ``name``, unless another server than the usual one is asked.
  ///
  /// A failure or absence of one server says nothing about another.
  var storageName: String { get }
  /// The lines of text with links that must stand wherever its data are shown.
  var attribution: [String] { get }
  /// Whether it must be told the country of a place.
  var needsCountry: Bool { get }

  /// Returns the kinds of data that the service has for a place.
  func availability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset>
  /// Returns the service that has a kind of data, or `nil` if this provider has none of that kind.
  ///
  /// One request can ask for all kinds of one service, and one that fails says nothing of another.
  func service(of dataset: WeatherDataset) -> String?
  /// Returns the weight of a request in the provider's quota.
  func weight(of request: ProviderRequest) -> Double
  /// The number of places that one request may have; 1 unless the provider says otherwise.
  var placesPerRequest: Int { get }

  /// Fetches the kinds of data of one place.
  ///
  /// A failure of one kind never sinks the others: each has a result of its own.
  func fetch(_ request: ProviderRequest) async -> ProviderAnswer
  /// Fetches several places, at most ``placesPerRequest``, which all want the same kinds of data and the same days.
  ///
  /// - Returns: One answer for each request, in their order.
  func fetch(_ requests: [ProviderRequest]) async -> [ProviderAnswer]
}

extension ForecastProvider {
  /// The name of the provider.
  public var storageName: String { name }
  /// One place.
  public var placesPerRequest: Int { 1 }
  /// Fetches the places one by one.
  public func fetch(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    var answers: [ProviderAnswer] = []
    for request in requests { answers.append(await fetch(request)) }
    return answers
  }
}

/// A request: kinds of data of a place, and days where these have any.
public struct ProviderRequest: Hashable, Codable, Sendable {
  /// The place.
  public var place: ForecastPlace
  /// The first day, in the place's zone.
  public var day: LocalDay
  /// The number of days.
  public var days: Int
  /// The kinds of data.
  public var datasets: Set<WeatherDataset>

  /// Makes a request.
  public init(_ place: ForecastPlace, from day: LocalDay, days: Int, _ datasets: Set<WeatherDataset>) {
    self.place = place
    self.day = day
    self.days = days
    self.datasets = datasets
  }
}

/// The answer of a provider, kind by kind; `nil` for kinds that were not requested.
public struct ProviderAnswer: Codable, Sendable {
  /// The answer for one kind of data.
  public enum Part<Value: Codable & Sendable>: Codable, Sendable {
    /// The data, with the time until which they hold where the provider gives one.
    case data(Value, until: Date? = nil)
    /// The service has no data for this place, such as waves inland; believed for a while.
    case noCoverage(for: Duration)
    /// The data could not be fetched.
    case failure(ProviderError)

    /// The failure; `nil` for an answer.
    var failure: ProviderError? { if case .failure(let error) = self { error } else { nil } }
  }

  /// The conditions of the moment.
  public var current: Part<CurrentWeather>?
  /// The hours.
  public var hourly: Part<HourlyForecast>?
  /// The days.
  public var daily: Part<DailyForecast>?
  /// The warnings.
  public var alerts: Part<WeatherAlerts>?
  /// The sea.
  public var marine: Part<MarineForecast>?

  /// Makes an answer that has nothing yet.
  public init() {}

  /// Makes an answer in which everything that was asked for failed.
  public init(failure: ProviderError, of datasets: Set<WeatherDataset>) {
    if datasets.contains(.current) { current = .failure(failure) }
    if datasets.contains(.hourly) { hourly = .failure(failure) }
    if datasets.contains(.daily) { daily = .failure(failure) }
    if datasets.contains(.alerts) { alerts = .failure(failure) }
    if datasets.contains(.marine) { marine = .failure(failure) }
  }
}

extension ProviderAnswer {
  /// The failure, if everything that was requested failed for one reason; `nil` otherwise.
  var failureOfAll: ProviderError? {
    // Two levels: no entry for what was not requested, `nil` inside for what was answered.
    let parts: [ProviderError??] = [
      current.map(\.failure), hourly.map(\.failure), daily.map(\.failure), alerts.map(\.failure), marine.map(\.failure),
    ]
    let failures = parts.compactMap { $0 }
    guard let first = failures.first, failures.allSatisfy({ $0 == first }) else { return nil }
    return first
  }
}
