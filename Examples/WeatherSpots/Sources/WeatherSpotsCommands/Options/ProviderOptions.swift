public import ArgumentParser
import Foundation
public import Larder
public import WeatherSpotsKit

/// Command-line options that choose the weather provider, its server, its time limit and the cache policy.
public struct ProviderOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "The provider: open-meteo, weatherkit, or recorded, which is old weather with new dates and needs no network.", valueName: "name"))
  var provider = Settings.provider

  /// Whether the answer comes from the cache, the network or both.
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

  /// Cache policies of `--policy`, which order the stored forecast and the request.
  public enum Policy: String, ExpressibleByArgument, CaseIterable, Sendable {
    /// Shows a fresh stored forecast, or sends a request if there is none.
    case cacheFirst = "cache-first"
    /// Shows the stored forecast at once, and then sends a request to refresh it.
    case staleWhileRevalidate = "stale-while-revalidate"
    /// Sends a request, and falls back to the stored forecast.
    case networkFirst = "network-first"
    /// Sends a request and never shows a stored forecast.
    case networkOnly = "network-only"
    /// Shows the stored forecast and sends no request.
    case cacheOnly = "cache-only"
  }

  /// Creates the options without values, as `ParsableArguments` requires.
  public init() {}

  /// Checks the time limit and the server, and refuses `--refresh` together with `--policy`.
  public func validate() throws {
    guard (0.1...600).contains(timeout) else { throw ValidationError("--timeout takes 0.1 to 600 seconds.") }
    guard !refresh || policy == .cacheFirst else { throw ValidationError("Give either --refresh or --policy.") }
    // A malformed --api must end as a usage error (64), before a store is opened.
    _ = try base()
  }

  /// The clock of the command, which `--now` stops at one instant.
  var clock: any WallClock { time.clock }

  // The request ends by its own time limit first. The five seconds more are for opening the cache and storing the answer.
  var fetchPolicy: FetchPolicy { fetchPolicy(waiting: .seconds(timeout + 5)) }

  /// Fetch policy for many spots, with a limit of a day because requests queue for each other and for the quota.
  ///
  /// Each request still ends by its own time limit.
  var fetchPolicyForMany: FetchPolicy { fetchPolicy(waiting: .hours(24)) }

  private func fetchPolicy(waiting limit: Duration) -> FetchPolicy {
    switch refresh ? .networkFirst : policy {
    case .cacheFirst: .cacheFirst
    case .staleWhileRevalidate: .staleWhileRevalidate
    // The time limit of a request reports itself with its reason. This one covers the time around the request.
    case .networkFirst: .networkFirst(timeout: limit)
    case .networkOnly: .networkOnly
    case .cacheOnly: .cacheOnly
    }
  }

  /// Opens the forecast repository of a store, with the chosen provider.
  ///
  /// - Parameter gathers: Whether places that wait for a request at the same time share one, where the provider takes several.
  func weather(_ storage: SpotStore, retry: RetryPolicy, gathers: Bool = false) async throws -> WeatherService {
    // A host that answered Retry-After gets no request in later runs either, so the waiting times are read from the store.
    let holds = try await Holds(storage, clock: clock)
    let limits = provider == .weatherKit ? ProviderLimits.weatherKit() : .openMeteo()
    return try await WeatherService(
      storage, provider: try makeProvider(holds), limits: limits, retry: retry, gathersPlaces: gathers, clock: clock)
  }

  /// Runs `body` with the forecast repository of a store, and then waits for its background refreshes.
  public func withWeather<Result>(
    _ storage: SpotStore, retry: RetryPolicy = .never, gathers: Bool = false, _ body: (WeatherService) async throws -> Result
  ) async throws -> Result {
    let weather = try await weather(storage, retry: retry, gathers: gathers)
    let result = try await body(weather)
    // A refresh in the background would be lost if the store were closed before the answer is stored.
    await weather.settled()
    return result
  }

  /// Opens the cached geocoding service of a store.
  func geocoding(_ storage: SpotStore) async throws -> Geocoding {
    // Recorded weather promises to need no network, and this holds for geocoding too.
    let transport: any Transport = provider == .recorded ? RecordedTransport(now: instant) : URLSessionTransport()
    return try await Geocoding(
      storage, servers: try servers(), transport: transport, timeout: limit, limits: .openMeteo(), retry: .never,
      holds: try await Holds(storage, clock: clock), clock: clock)
  }

  /// Time limit of one request.
  var limit: Duration { .milliseconds(Int(timeout * 1000)) }
  private var instant: @Sendable () -> Date {
    // The closure is `Sendable` and must not capture the whole options.
    let clock = clock
    return { clock.now }
  }

  /// Creates the chosen provider.
  ///
  /// - Parameter holds: Hosts and keys that get no request for now, such as after Retry-After. Pass `nil` only to check whether the
  ///   provider can be created.
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
    // A customer's key selects Open-Meteo's paid hosts, unless --api names another server.
    if let key = try Settings.load()[.openMeteoKey]?.value { return OpenMeteoServers(apiKey: key, at: base) }
    return base.map(OpenMeteoServers.init) ?? .openMeteo
  }

  private func weatherKitKey() throws -> WeatherKitKey {
    // A platform that cannot sign is reported first: no key would help there.
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
    // The option wins over the setting, as for all options.
    guard let api = api ?? Settings.api else { return nil }
    guard let url = Settings.server(api) else {
      throw ValidationError("--api takes a URL such as http://127.0.0.1:8080.")
    }
    return url
  }
}
