public import Foundation

/// Provider for Apple's WeatherKit, through its REST API.
public struct WeatherKitProvider: ForecastProvider {
  private let server: URL
  private let transport: any Transport
  private let timeout: Duration
  private let language: String
  private let tokens: WeatherKitTokens
  private let now: @Sendable () -> Date
  private let holds: Holds?

  /// URL of Apple's server.
  public static let server = URL(string: "https://weatherkit.apple.com") ?? URL(filePath: "/")

  /// Creates a provider.
  ///
  /// A key is on hold for fifteen minutes after the service refused two of its tokens in a row. Pass the `holds` of a store so that later
  /// runs respect that too.
  /// - Parameters:
  ///   - key: Key that signs the requests.
  ///   - server: Server that gets the requests.
  ///   - language: Language of texts.
  ///   - transport: HTTP transport.
  ///   - timeout: Time limit of each request.
  ///   - holds: Hosts and keys for which no request is sent for now. Without it no host is held, and a refused key only in this run.
  ///   - now: Returns the current time.
  public init(
    key: WeatherKitKey, server: URL = Self.server, language: String = "en", transport: any Transport = URLSessionTransport(),
    timeout: Duration = .seconds(10), holds: Holds? = nil, now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.server = server
    self.transport = transport
    self.timeout = timeout
    self.language = language
    self.now = now
    self.holds = holds
    tokens = WeatherKitTokens(key, at: server, holds: holds, now: now)
  }

  /// Name of the provider.
  public var name: String { "weatherkit" }

  /// Name under which the provider's data are stored, with the origin of any server that is not Apple's.
  public var storageName: String { server == Self.server ? name : "\(name) at \(OpenMeteoServers.origin(server))" }

  /// Credit and link that Apple requires.
  public var attribution: [String] { Self.credit }
  static let credit = ["Weather data by Apple Weather (https://weatherkit.apple.com/legal-attribution.html)"]

  /// Always `true`, because warnings depend on the country.
  public var needsCountry: Bool { true }

  /// Returns "weather", or `nil` for the sea and for astronomy, which WeatherKit does not offer.
  public func service(of dataset: WeatherDataset) -> String? {
    switch dataset {
    case .current, .hourly, .daily, .alerts: "weather"
    case .marine, .astronomy: nil
    }
  }

  /// Returns 1, since each request counts as one call of the 500,000 a month.
  public func weight(of request: ProviderRequest) -> Double { 1 }

  /// Fetches the kinds of data that WeatherKit has for a place.
  public func availability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset> {
    // Apple's API names the country `country` in a request for the availability, and `countryCode` in a request for the weather.
    let items = place.country.isEmpty ? [] : [URLQueryItem(name: "country", value: place.country)]
    let response = try await get("/api/v1/availability/\(Self.path(place))", items)
    do {
      let names = try JSONDecoder().decode([String].self, from: response.body)
      // Names without a kind of data are new data sets of Apple's. Astronomy is computed here, for every place.
      return Set(names.compactMap(Self.dataset)).union([.astronomy])
    } catch { throw .malformed("the availability is not a list of names") }
  }

  /// Fetches the name of the service and the URLs of its marks, as Apple requires them for the credit.
  public func attributionMarks() async throws(ProviderError) -> WeatherKitAttribution {
    // No token: the attribution is public.
    let response = try await send("/attribution/\(language)", [], headers: [:])
    guard response.status == 200 else { throw WeatherKitResponse.error(response, at: now()) }
    return try WeatherKitAttribution(response.body, server: server)
  }

  /// Fetches the requested kinds of data of one place with one request.
  public func fetch(_ request: ProviderRequest) async -> ProviderAnswer {
    // The order is that of `allCases`: a set has another order in each run, and equal requests would have different URLs.
    let names = WeatherDataset.allCases.filter(request.datasets.contains).compactMap(Self.name)
    do throws(ProviderError) {
      // Without names the request would still cost a call of the month's quota.
      guard !names.isEmpty else { throw .unsupported }
      let response = try await get("/api/v1/weather/\(language)/\(Self.path(request.place))", query(request, names))
      let provenance = Provenance(provider: name, server: server.host() ?? "the server", isRecorded: response.isRecorded)
      var answer = try WeatherKitResponse(response.body).answer(to: request.datasets, in: request.place.zone, provenance)
      // A requested kind without a part would read as a malformed answer.
      if request.datasets.contains(.marine) { answer.marine = .failure(.unsupported) }
      return answer
    } catch {
      return ProviderAnswer(failure: error, of: request.datasets)
    }
  }

  private func query(_ request: ProviderRequest, _ names: [String]) -> [URLQueryItem] {
    var items = [
      URLQueryItem(name: "dataSets", value: names.joined(separator: ",")), URLQueryItem(name: "timezone", value: request.place.timezone),
    ]
    if !request.place.country.isEmpty { items.append(URLQueryItem(name: "countryCode", value: request.place.country)) }
    // Both ends come from the calendar of the zone, because a day of a clock change has 23 or 25 hours.
    let start = request.day.interval(in: request.place.zone).start
    let end = request.day.advanced(by: request.days - 1).interval(in: request.place.zone).end
    for (dataset, prefix) in [(WeatherDataset.hourly, "hourly"), (.daily, "daily")] where request.datasets.contains(dataset) {
      items.append(URLQueryItem(name: "\(prefix)Start", value: start.formatted(.iso8601)))
      items.append(URLQueryItem(name: "\(prefix)End", value: end.formatted(.iso8601)))
    }
    return items
  }

  /// Sends a signed request and returns its response.
  ///
  /// A refused token is renewed once for all requests that used it. If the service refuses the new token too, the key is on hold and later
  /// requests throw.
  private func get(_ path: String, _ items: [URLQueryItem]) async throws(ProviderError) -> TransportResponse {
    var token = try await tokens.current()
    var response = try await send(path, items, token)
    // A loop: the token of another request's trial may be refused as well. A hold of the key ends it with an error.
    while response.status == 401 {
      let renewal = try await tokens.renewal(after: token)
      token = renewal.token
      guard renewal.isTrial else {
        response = try await send(path, items, token)
        continue
      }
      // Every path must end the trial. Otherwise all waiting requests hang for ever.
      do throws(ProviderError) { response = try await send(path, items, token) } catch {
        await tokens.endTrial(refusal: nil)
        throw error
      }
      // Only a 401 speaks against the key. Any other status is the outcome of this request.
      let refusal = response.status == 401 ? WeatherKitResponse.error(response, at: now()) : nil
      await tokens.endTrial(refusal: refusal)
      if let refusal { throw refusal }
    }
    guard response.status == 200 else { throw WeatherKitResponse.error(response, at: now()) }
    return response
  }

  private func send(_ path: String, _ items: [URLQueryItem], _ token: WeatherKitToken) async throws(ProviderError) -> TransportResponse {
    try await send(path, items, headers: ["Authorization": "Bearer \(token.text)"])
  }

  private func send(_ path: String, _ items: [URLQueryItem], headers: [String: String]) async throws(ProviderError) -> TransportResponse {
    var url = server.appending(path: path)
    if !items.isEmpty { url.append(queryItems: items) }
    // Before the request: a host that asked for time must not get one more, from this run or the next.
    try holds?.check(url.hostAndPort)
    let response: TransportResponse
    do throws(TransportError) {
      response = try await transport.get(TransportRequest(url, headers: headers, timeout: timeout))
    } catch { throw .network(error) }
    if response.status != 200 { await holds?.note(WeatherKitResponse.error(response, at: now()), of: url) }
    return response
  }

  private static func path(_ place: ForecastPlace) -> String {
    "\(place.cell.center.latitude.text(decimals: 5))/\(place.cell.center.longitude.text(decimals: 5))"
  }

  private static let names: [(WeatherDataset, String)] = [
    (.current, "currentWeather"), (.hourly, "forecastHourly"), (.daily, "forecastDaily"), (.alerts, "weatherAlerts"),
  ]

  private static func name(_ dataset: WeatherDataset) -> String? { names.first { $0.0 == dataset }?.1 }

  private static func dataset(_ name: String) -> WeatherDataset? { names.first { $0.1 == name }?.0 }
}

/// Name and marks that you must show with WeatherKit's data.
public struct WeatherKitAttribution: Hashable, Sendable {
  /// Name of the service.
  public let serviceName: String
  /// URLs of the marks by name, such as `logoDark@2x`.
  public let marks: [String: URL]

  init(_ body: Data, server: URL) throws(ProviderError) {
    let texts: [String: String]
    do { texts = try JSONDecoder().decode([String: String].self, from: body) } catch { throw .malformed("no attribution") }
    guard let serviceName = texts["serviceName"] else { throw .malformed("no attribution") }
    self.serviceName = serviceName
    var marks: [String: URL] = [:]
    // The service sends paths without a host.
    for (name, path) in texts where name.hasPrefix("logo") { marks[name] = server.appending(path: path) }
    self.marks = marks
  }
}
