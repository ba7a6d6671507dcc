// OpenMeteo/ speaks to the weather service: what is asked for, the service's wire format, and its failures as one typed error.
// Nothing here stores anything. Called by WeatherService through ForecastProvider.

public import Foundation

/// Open-Meteo: the weather and the sea from two hosts, asked side by side.
public struct OpenMeteoProvider: ForecastProvider {
  /// Its name.
  public let name: String
  /// The name that its data are kept under, with the server where that is not Open-Meteo's own.
  public let storageName: String
  let client: OpenMeteoClient
  // With its type: without it, Swift 6.3.1 takes the protocol's default for the requirement, and every place is asked alone.
  /// The number of places of one request.
  public var placesPerRequest: Int = Self.placesPerRequest
  /// Whether requests count against a quota.
  var isCounted = true

  /// The credit that Open-Meteo asks for.
  public var attribution: [String] { ["Weather data by Open-Meteo.com (https://open-meteo.com/), CC BY 4.0"] }

  /// Whether a place must come with its country: `false`, a point is enough.
  public var needsCountry: Bool { false }

  /// Everything but warnings, and the sea everywhere: whether a place has one, only asking tells.
  public func availability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset> {
    [.current, .hourly, .daily, .marine, .astronomy]
  }

  /// Returns the service of the weather or that of the sea.
  public func service(of dataset: WeatherDataset) -> String? {
    switch dataset {
    case .current, .hourly, .daily: "forecast"
    case .marine: "marine"
    case .alerts, .astronomy: nil
    }
  }

  /// Open-Meteo counts a call for each place, ten variables and two weeks.
  public func weight(of request: ProviderRequest) -> Double {
    guard isCounted else { return 0 }
    let forecast = forecastQuery([request]).map(\.weight) ?? 0
    return forecast + (request.datasets.contains(.marine) ? marineQuery([request]).weight : 0)
  }

  /// The number of places of one request: the service takes a thousand; with 25, the URL has some 2 kB and the answer some 700.
  public static let placesPerRequest = 25

  /// Asks for the kinds of data of one place.
  public func fetch(_ request: ProviderRequest) async -> ProviderAnswer {
    let answers = await fetch([request])
    return answers.first ?? ProviderAnswer(failure: .malformed("no place"), of: request.datasets)
  }

  /// Asks for several places with one call for the weather and one for the sea; all must want the same kinds of data and the same days.
  ///
  /// It saves round trips, and nothing of the quota. A place that the service refuses spoils the others: Larder then divides the request.
  /// - Returns: One answer for each request, in their order.
  public func fetch(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    guard let first = requests.first else { return [] }
    guard requests.allSatisfy({ $0.datasets == first.datasets && $0.day == first.day && $0.days == first.days }) else {
      return await fetchEachAlone(requests)
    }
    async let sea = marineAnswers(requests)
    let weather = await forecastAnswers(requests)
    return zip(weather, await sea).map { weather, sea in
      var answer = weather
      answer.marine = sea.marine
      if first.datasets.contains(.alerts) { answer.alerts = .failure(.unsupported) }
      return answer
    }
  }

  private func fetchEachAlone(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    var answers: [ProviderAnswer] = []
    for request in requests { answers.append(await fetch(request)) }
    return answers
  }

  private func forecastAnswers(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    let asked = requests.first?.datasets.intersection([.current, .hourly, .daily]) ?? []
    guard let query = forecastQuery(requests) else { return requests.map { _ in ProviderAnswer() } }
    do throws(ProviderError) {
      let (places, provenance) = try await get(query.url, count: requests.count)
      return zip(requests, places).map { $1.answer(to: asked, in: $0.place.zone, provenance) }
    } catch {
      return requests.map { _ in ProviderAnswer(failure: error, of: asked) }
    }
  }

  private func marineAnswers(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    guard requests.first?.datasets.contains(.marine) == true else { return requests.map { _ in ProviderAnswer() } }
    do throws(ProviderError) {
      let (places, provenance) = try await get(marineQuery(requests).url, count: requests.count)
      return places.map { $0.marineAnswer(provenance) }
    } catch {
      return requests.map { _ in ProviderAnswer(failure: error, of: [.marine]) }
    }
  }

  private func get(_ url: URL, count: Int) async throws(ProviderError) -> ([OpenMeteoResponse], Provenance) {
    try await client.get(url) { (response: TransportResponse) throws(ProviderError) -> ([OpenMeteoResponse], Provenance) in
      let places = try OpenMeteoResponse.places(response)
      guard places.count == count else { throw .wrongCount(places.count, insteadOf: count) }
      guard places.contains(where: \.hasSections) else { throw .withoutSections }
      return (places, Provenance(provider: name, server: url.host() ?? "the server", isRecorded: response.isRecorded))
    }
  }

  private func forecastQuery(_ requests: [ProviderRequest]) -> OpenMeteoQuery? {
    let datasets = requests.first?.datasets ?? []
    let sections = [
      (WeatherDataset.current, WeatherHour.currentVariables.map(\.name)), (.hourly, WeatherHour.hourlyVariables.map(\.name)),
      (.daily, WeatherDay.variables.map(\.name)),
    ].filter { datasets.contains($0.0) }.map { ($0.0.rawValue, $0.1) }
    guard !sections.isEmpty else { return nil }
    return OpenMeteoQuery(
      client.servers, client.servers.forecast, "/v1/forecast", requests, sections: sections, today: today, metric: ["celsius", "kmh", "mm"])
  }

  private func marineQuery(_ requests: [ProviderRequest]) -> OpenMeteoQuery {
    OpenMeteoQuery(
      client.servers, client.servers.marine, "/v1/marine", requests, sections: [("hourly", SeaHour.variables.map(\.name))], today: today,
      metric: ["metric"])
  }

  private var today: LocalDay { LocalDay(containing: client.now(), in: .gmt) }
}

extension OpenMeteoProvider {
  /// Makes a provider; each request gets the time limit.
  ///
  /// - Parameters:
  ///   - servers: Who is asked.
  ///   - transport: How.
  ///   - timeout: How long each answer may take.
  ///   - holds: The hosts that are not asked now; without it every request is made.
  ///   - now: The time.
  public init(
    servers: OpenMeteoServers = .openMeteo, transport: any Transport = URLSessionTransport(), timeout: Duration = .seconds(10),
    holds: Holds? = nil, now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.init(
      name: "open-meteo", storageName: servers.origin.map { "open-meteo at \($0)" } ?? "open-meteo",
      client: OpenMeteoClient(servers: servers, transport: transport, timeout: timeout, holds: holds, now: now))
  }
}

extension ProviderError {
  fileprivate static func wrongCount(_ count: Int, insteadOf wanted: Int) -> ProviderError {
    .mismatched("\(count) places instead of \(wanted)")
  }

  /// The failure of an answer that has none of the sections that were asked for, in any place.
  ///
  /// Where there are no data the service sends sections of nulls, so this is no answer.
  fileprivate static let withoutSections = ProviderError.mismatched("none of the data that was asked for")
}
