public import Foundation

/// Client of a weather service that offers forecasts.
///
/// A provider stores nothing. ``WeatherService`` caches its answers and decides how long they stay fresh.
public protocol ForecastProvider: Sendable {
  /// Name of the provider as the option `--provider` takes it.
  var name: String { get }
  /// Name under which the provider's data, absences and failures are stored.
  ///
  /// It equals ``name`` unless requests go to another server than the usual one. Servers are kept apart because a failure or absence at one
  /// of them need not hold at another.
  var storageName: String { get }
  /// Lines of credit with links, which you must show wherever you show the provider's data.
  var attribution: [String] { get }
  /// Whether requests to the provider need the country of a place.
  var needsCountry: Bool { get }

  /// Returns the kinds of data that the service has for a place.
  func availability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset>
  /// Returns the name of the service that offers a kind of data, or `nil` if this provider does not offer that kind.
  ///
  /// One request can fetch all kinds of data of one service. Services fail independently of each other.
  func service(of dataset: WeatherDataset) -> String?
  /// Returns the weight of a request, in calls of the provider's quota.
  func weight(of request: ProviderRequest) -> Double
  /// Number of places that one request may have.
  ///
  /// The default is 1.
  var placesPerRequest: Int { get }

  /// Fetches the requested kinds of data of one place.
  ///
  /// Each kind has a result of its own, so a failure of one kind leaves the others intact.
  func fetch(_ request: ProviderRequest) async -> ProviderAnswer
  /// Fetches several places, at most ``placesPerRequest``.
  ///
  /// All requests must have the same kinds of data and the same days.
  ///
  /// - Returns: One answer for each request, in the order of the requests.
  func fetch(_ requests: [ProviderRequest]) async -> [ProviderAnswer]
}

extension ForecastProvider {
  /// Storage name that equals ``name``, for a provider with one server.
  public var storageName: String { name }
  /// One place per request.
  public var placesPerRequest: Int { 1 }
  /// Fetches the places one by one, with a request for each.
  public func fetch(_ requests: [ProviderRequest]) async -> [ProviderAnswer] { await fetchEachAlone(requests) }

  func fetchEachAlone(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    var answers: [ProviderAnswer] = []
    // One at a time: the caller's concurrency limit counts this whole call as one request.
    for request in requests { answers.append(await fetch(request)) }
    return answers
  }
}

/// A request for kinds of data of one place and a range of days.
///
/// Kinds of data that do not belong to days ignore the range.
public struct ProviderRequest: Hashable, Codable, Sendable {
  /// Place whose data are requested.
  public var place: ForecastPlace
  /// First day, in the time zone of the place.
  public var day: LocalDay
  /// Number of days from the first one on.
  public var days: Int
  /// Requested kinds of data.
  public var datasets: Set<WeatherDataset>

  /// Creates a request.
  public init(_ place: ForecastPlace, from day: LocalDay, days: Int, _ datasets: Set<WeatherDataset>) {
    self.place = place
    self.day = day
    self.days = days
    self.datasets = datasets
  }
}

/// A provider's answer for one place, with a part for each kind of data.
///
/// A part is `nil` if its kind was not requested.
public struct ProviderAnswer: Codable, Sendable {
  /// Outcome for one kind of data.
  public enum Part<Value: Codable & Sendable>: Codable, Sendable {
    /// Data, with their expiry time if the provider gives one.
    case data(Value, until: Date? = nil)
    /// The service has no data for this place, such as waves inland.
    ///
    /// The absence is cached for the given duration.
    case noCoverage(for: Duration)
    /// The data could not be fetched.
    case failure(ProviderError)

    /// Error of a failed part, or `nil` for data and for an absence.
    var failure: ProviderError? { if case .failure(let error) = self { error } else { nil } }
  }

  /// Current conditions.
  public var current: Part<CurrentWeather>?
  /// Hourly forecast.
  public var hourly: Part<HourlyForecast>?
  /// Daily forecast.
  public var daily: Part<DailyForecast>?
  /// Weather warnings.
  public var alerts: Part<WeatherAlerts>?
  /// Marine forecast.
  public var marine: Part<MarineForecast>?

  /// Creates an answer without any part.
  public init() {}

  /// Creates an answer in which every requested kind of data failed with the same error.
  public init(failure: ProviderError, of datasets: Set<WeatherDataset>) {
    // `ProviderAnswer` has no part for astronomy: the program computes Sun and Moon itself and requests them from no provider.
    if datasets.contains(.current) { current = .failure(failure) }
    if datasets.contains(.hourly) { hourly = .failure(failure) }
    if datasets.contains(.daily) { daily = .failure(failure) }
    if datasets.contains(.alerts) { alerts = .failure(failure) }
    if datasets.contains(.marine) { marine = .failure(failure) }
  }
}

extension ProviderAnswer {
  /// Common error of all requested kinds of data, or `nil` if a kind succeeded or the errors differ.
  var failureOfAll: ProviderError? {
    // Two levels of optional: the outer `nil` is a kind that was not requested, the inner one a kind that did not fail.
    let parts: [ProviderError??] = [
      current.map(\.failure), hourly.map(\.failure), daily.map(\.failure), alerts.map(\.failure), marine.map(\.failure),
    ]
    let failures = parts.compactMap { $0 }
    // An answer without parts has no failure, although `allSatisfy` holds for an empty array.
    guard let first = failures.first, failures.allSatisfy({ $0 == first }) else { return nil }
    return first
  }
}
