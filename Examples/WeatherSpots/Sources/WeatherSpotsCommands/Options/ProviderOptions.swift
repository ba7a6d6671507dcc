public import ArgumentParser
import Foundation
public import Larder
public import WeatherSpotsKit

/// The options that say whom to ask for the weather, and how.
public struct ProviderOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "The provider: open-meteo, weatherkit, or recorded, which is old weather with new dates and needs no network.", valueName: "name"))
  var provider = Settings.provider

  /// The source of the answer.
  @Option(
    help: ArgumentHelp(
      """
      The source of the answer: cache-first, stale-while-revalidate (stored data at once, then a refresh), network-first, \
      network-only or cache-only.
      """, valueName: "name"))
  public var policy = Policy.cacheFirst

  /// Whether a request is sent even if a fresh forecast is stored.
  @Flag(help: "The same as --policy network-first: send a request even if a fresh forecast is stored.")
  public var refresh = false

  @Option(help: ArgumentHelp("Another server with the same interface as the provider's.", valueName: "url"))
  var api: String?

  @Option(help: ArgumentHelp("The time limit of an answer.", valueName: "seconds"))
  var timeout = Settings.timeout

  @OptionGroup var time: TimeOption

  enum ProviderName: String, ExpressibleByArgument, CaseIterable, Sendable {
    case openMeteo = "open-meteo"
    case weatherKit = "weatherkit"
    case recorded
  }

  /// The sources of an answer, and their order.
  public enum Policy: String, ExpressibleByArgument, CaseIterable, Sendable {
    /// What is stored and fresh, else a request.
    case cacheFirst = "cache-first"
    /// What is stored, and then a request.
    case staleWhileRevalidate = "stale-while-revalidate"
    /// A request, else what is stored.
    case networkFirst = "network-first"
    /// A request.
    case networkOnly = "network-only"
    /// What is stored.
    case cacheOnly = "cache-only"
  }

  /// Makes the options without values, as the parser asks for it.
  public init() {}

  /// Checks the values that exclude each other.
  public func validate() throws {
    guard (0.1...600).contains(timeout) else { throw ValidationError("--timeout takes 0.1 to 600 seconds.") }
    guard !refresh || policy == .cacheFirst else { throw ValidationError("Give either --refresh or --policy.") }
    _ = try base()
  }

  /// The time that everything goes by.
  var clock: any WallClock { time.clock }

  var fetchPolicy: FetchPolicy { fetchPolicy(waiting: .seconds(timeout + 5)) }

  /// The policy for many spots: requests wait for each other and for the quota, and each still ends by itself.
  var fetchPolicyForMany: FetchPolicy { fetchPolicy(waiting: .hours(24)) }

  private func fetchPolicy(waiting limit: Duration) -> FetchPolicy {
    switch refresh ? .networkFirst : policy {
    case .cacheFirst: .cacheFirst
    case .staleWhileRevalidate: .staleWhileRevalidate
    // A request that takes too long ends by itself, and says so; this limit is for what else may take time.
    case .networkFirst: .networkFirst(timeout: limit)
    case .networkOnly: .networkOnly
    case .cacheOnly: .cacheOnly
    }
  }

  /// Returns the weather of a store.
  ///
  /// - Parameter gathers: Whether places that wait for a request at the same time share one, where the provider takes several.
  func weather(_ storage: SpotStore, retry: RetryPolicy, gathers: Bool = false) async throws -> WeatherService {
    let holds = try await Holds(storage, clock: clock)
    let limits = provider == .weatherKit ? ProviderLimits.weatherKit() : .openMeteo()
    return try await WeatherService(
      storage, provider: try makeProvider(holds), limits: limits, retry: retry, gathersPlaces: gathers, clock: clock)
  }

  /// Asks for weather, and waits for what goes on in the background.
  public func withWeather<Result>(
    _ storage: SpotStore, retry: RetryPolicy = .never, gathers: Bool = false, _ body: (WeatherService) async throws -> Result
  ) async throws -> Result {
    let weather = try await weather(storage, retry: retry, gathers: gathers)
    let result = try await body(weather)
    await weather.settled()
    return result
  }

  /// Returns the geocoding of a store.
  func geocoding(_ storage: SpotStore) async throws -> Geocoding {
    let transport: any Transport = provider == .recorded ? RecordedTransport(now: instant) : URLSessionTransport()
    return try await Geocoding(
      storage, servers: try servers(), transport: transport, timeout: limit, limits: .openMeteo(), retry: .never,
      holds: try await Holds(storage, clock: clock), clock: clock)
  }

  /// The time limit of a request.
  var limit: Duration { .milliseconds(Int(timeout * 1000)) }
  private var instant: @Sendable () -> Date {
    let clock = clock
    return { clock.now }
  }

  /// Makes the provider that is asked.
  ///
  /// - Parameter holds: The hosts and keys that are not asked now; `nil` only to find out whether a provider can be made.
  func makeProvider(_ holds: Holds?) throws -> any ForecastProvider {
    switch provider {
    case .openMeteo: OpenMeteoProvider(servers: try servers(), timeout: limit, holds: holds, now: instant)
    case .weatherKit:
      WeatherKitProvider(
        key: try weatherKitKey(), server: try base() ?? WeatherKitProvider.server, timeout: limit, holds: holds, now: instant)
    case .recorded: OpenMeteoProvider.recorded(now: instant)
    }
  }

  private func servers() throws -> OpenMeteoServers {
    let base = try base()
    if let key = try Settings.load()[.openMeteoKey]?.value { return OpenMeteoServers(apiKey: key, at: base) }
    return base.map(OpenMeteoServers.init) ?? .openMeteo
  }

  private func weatherKitKey() throws -> WeatherKitKey {
    try WeatherKitKey.checkSigning()
    let settings = try Settings.load()
    func value(_ key: Settings.Key) throws -> String {
      guard let setting = settings[key] else {
        throw Failure(.usage, "WeatherKit needs \(key.variable) in the environment; see `weather-spots help forecast`")
      }
      return setting.value
    }
    return try WeatherKitKey(
      file: URL(filePath: try value(.keyFile)), keyID: try value(.keyID), teamID: try value(.teamID), serviceID: try value(.serviceID))
  }

  private func base() throws -> URL? {
    guard let api = api ?? Settings.api else { return nil }
    guard let url = Settings.server(api) else {
      throw ValidationError("--api takes a URL such as http://127.0.0.1:8080.")
    }
    return url
  }
}
