// OpenMeteo/ is the client of Open-Meteo: its queries, its wire format, and its failures as ProviderError.
// Nothing here stores anything. Called by WeatherService through ForecastProvider.

public import Foundation

/// Provider for Open-Meteo, which requests the weather and the sea from two hosts at the same time.
public struct OpenMeteoProvider: ForecastProvider {
  /// Name of the provider.
  public let name: String
  /// Name under which the provider's data are stored, with the origin of any server that is not Open-Meteo's own.
  public let storageName: String
  let client: OpenMeteoClient
  // Keep the explicit type. Without it, Swift 6.3.1 uses the protocol's default as the witness, and every place gets its own request.
  /// Number of places that one request may have.
  public var placesPerRequest: Int = Self.placesPerRequest
  /// Whether requests count against Open-Meteo's quota.
  var isCounted = true

  /// Credit that Open-Meteo requires.
  public var attribution: [String] { ["Weather data by Open-Meteo.com (https://open-meteo.com/), CC BY 4.0"] }

  /// Always `false`, because Open-Meteo needs only the coordinates of a place.
  public var needsCountry: Bool { false }

  /// Returns all kinds of data but warnings, for every place.
  ///
  /// The sea is included inland too. Only a marine request shows whether a place has data of the sea.
  public func availability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset> {
    [.current, .hourly, .daily, .marine, .astronomy]
  }

  /// Returns "forecast" for the weather, "marine" for the sea, and `nil` for warnings and astronomy.
  public func service(of dataset: WeatherDataset) -> String? {
    switch dataset {
    case .current, .hourly, .daily: "forecast"
    case .marine: "marine"
    case .alerts, .astronomy: nil
    }
  }

  /// Returns the number of calls that Open-Meteo counts for a request.
  ///
  /// The service counts one call for each place, each ten variables and each two weeks.
  public func weight(of request: ProviderRequest) -> Double {
    // Recorded weather costs nothing at the service, so it must not use up the quota.
    guard isCounted else { return 0 }
    let forecast = forecastQuery([request]).map(\.weight) ?? 0
    return forecast + (request.datasets.contains(.marine) ? marineQuery([request]).weight : 0)
  }

  /// Number of places that one request has at most.
  ///
  /// The service accepts a thousand. With 25 places the URL has about 2 kB and the answer about 700 kB.
  public static let placesPerRequest = 25

  /// Fetches the requested kinds of data of one place.
  public func fetch(_ request: ProviderRequest) async -> ProviderAnswer {
    let answers = await fetch([request])
    return answers.first ?? ProviderAnswer(failure: .malformed("no place"), of: request.datasets)
  }

  /// Fetches several places with one request for the weather and one for the sea.
  ///
  /// Requests that differ in their kinds of data or their days are sent one by one. Sharing a request saves round trips and no quota. One
  /// place that the service refuses fails the whole request, which Larder then divides.
  /// - Returns: One answer for each request, in the order of the requests.
  public func fetch(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    guard let first = requests.first else { return [] }
    // One URL has one range of days and one list of variables. Mixed requests would get the data of the first.
    guard requests.allSatisfy({ $0.datasets == first.datasets && $0.day == first.day && $0.days == first.days }) else {
      return await fetchEachAlone(requests)
    }
    // Two hosts at the same time, so that a slow sea does not delay the weather's request.
    async let sea = marineAnswers(requests)
    let weather = await forecastAnswers(requests)
    return zip(weather, await sea).map { weather, sea in
      var answer = weather
      answer.marine = sea.marine
      // A requested kind without a part would read as a malformed answer.
      if first.datasets.contains(.alerts) { answer.alerts = .failure(.unsupported) }
      return answer
    }
  }

  private func forecastAnswers(_ requests: [ProviderRequest]) async -> [ProviderAnswer] {
    let asked = requests.first?.datasets.intersection([.current, .hourly, .daily]) ?? []
    guard let query = forecastQuery(requests) else { return requests.map { _ in ProviderAnswer() } }
    do throws(ProviderError) {
      let (places, provenance) = try await get(query.url, count: requests.count)
      // The service returns no ids. Answers belong to requests by their order alone.
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
      // A missing place would shift all later answers to the wrong place.
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
    // Without variables the request would cost a call of the quota for an empty answer.
    guard !sections.isEmpty else { return nil }
    return OpenMeteoQuery(
      client.servers, client.servers.forecast, "/v1/forecast", requests, sections: sections, today: today,
      metric: [("temperature_unit", "celsius"), ("wind_speed_unit", "kmh"), ("precipitation_unit", "mm")])
  }

  private func marineQuery(_ requests: [ProviderRequest]) -> OpenMeteoQuery {
    OpenMeteoQuery(
      client.servers, client.servers.marine, "/v1/marine", requests, sections: [("hourly", SeaHour.variables.map(\.name))], today: today,
      metric: [("length_unit", "metric")])
  }

  private var today: LocalDay { LocalDay(containing: client.now(), in: .gmt) }
}

extension OpenMeteoProvider {
  /// Creates a provider.
  ///
  /// - Parameters:
  ///   - servers: Servers that get the requests.
  ///   - transport: HTTP transport.
  ///   - timeout: Time limit of each request.
  ///   - holds: Hosts to which no request is sent for now. Without it every request is sent.
  ///   - now: Returns the current time.
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
  // Not `.malformed`: a mismatched answer is no fault of one place, so the request is not divided.
  fileprivate static func wrongCount(_ count: Int, insteadOf wanted: Int) -> ProviderError {
    .mismatched("\(count) places instead of \(wanted)")
  }

  /// Error for an answer in which no place has any of the requested sections.
  ///
  /// For a place without data the service sends sections of nulls, so an answer without sections cannot mean "no data".
  fileprivate static let withoutSections = ProviderError.mismatched("none of the data that was asked for")
}
