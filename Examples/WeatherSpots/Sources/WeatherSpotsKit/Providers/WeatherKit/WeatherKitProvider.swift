public import Foundation

/// Apple's WeatherKit through its REST API.
public struct WeatherKitProvider: ForecastProvider {
  private let server: URL
  private let transport: any Transport
  private let timeout: Duration
  private let language: String
  private let tokens: WeatherKitTokens
  private let now: @Sendable () -> Date
  private let holds: Holds?

  /// Apple's server.
  public static let server = URL(string: "https://weatherkit.apple.com") ?? URL(filePath: "/")

  /// Makes a provider.
  ///
  /// A key that is refused, by two tokens one after the other, is not tried again for fifteen minutes; with the `holds` of a store by later
  /// runs neither.
  /// - Parameters:
  ///   - key: Who asks.
  ///   - server: Who is asked.
  ///   - language: The language of texts.
  ///   - transport: How.
  ///   - timeout: How long each answer may take.
  ///   - holds: The hosts and keys that are not asked now; without it every request is made.
  ///   - now: The time.
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

  /// Its name.
  public var name: String { "weatherkit" }

  /// The name that its data are kept under, with the server where that is not Apple's.
  public var storageName: String { server == Self.server ? name : "\(name) at \(OpenMeteoServers.origin(server))" }

  /// The mark and the link that Apple requires.
  public var attribution: [String] { Self.credit }
  static let credit = ["Weather data by Apple Weather (https://weatherkit.apple.com/legal-attribution.html)"]

  /// Whether a place must come with its country: `true`, warnings are a country's.
  public var needsCountry: Bool { true }

  /// Returns the one service, or `nil` for the sea, which it does not have.
  public func service(of dataset: WeatherDataset) -> String? {
    switch dataset {
    case .current, .hourly, .daily, .alerts: "weather"
    case .marine, .astronomy: nil
    }
  }

  /// Returns 1: each request counts as one of the month's 500,000.
  public func weight(of request: ProviderRequest) -> Double { 1 }

  /// Asks which data sets there are for a place.
  public func availability(at place: ForecastPlace) async throws(ProviderError) -> Set<WeatherDataset> {
    let items = place.country.isEmpty ? [] : [URLQueryItem(name: "country", value: place.country)]
    let response = try await get("/api/v1/availability/\(Self.path(place))", items)
    do {
      let names = try JSONDecoder().decode([String].self, from: response.body)
      return Set(names.compactMap(Self.dataset)).union([.astronomy])
    } catch { throw .malformed("the availability is not a list of names") }
  }

  /// Returns the credit as the service words it: the name of the service, and its marks as URLs.
  public func attributionMarks() async throws(ProviderError) -> WeatherKitAttribution {
    let response = try await send("/attribution/\(language)", [], headers: [:])
    guard response.status == 200 else { throw WeatherKitResponse.error(response, at: now()) }
    return try WeatherKitAttribution(response.body, server: server)
  }

  /// Asks for the data sets of one place with one request.
  public func fetch(_ request: ProviderRequest) async -> ProviderAnswer {
    let names = WeatherDataset.allCases.filter(request.datasets.contains).compactMap(Self.name)
    do throws(ProviderError) {
      guard !names.isEmpty else { throw .unsupported }
      let response = try await get("/api/v1/weather/\(language)/\(Self.path(request.place))", query(request, names))
      let provenance = Provenance(provider: name, server: server.host() ?? "the server", isRecorded: response.isRecorded)
      var answer = try WeatherKitResponse(response.body).answer(to: request.datasets, in: request.place.zone, provenance)
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
    let start = request.day.interval(in: request.place.zone).start
    let end = request.day.advanced(by: request.days - 1).interval(in: request.place.zone).end
    for (dataset, prefix) in [(WeatherDataset.hourly, "hourly"), (.daily, "daily")] where request.datasets.contains(dataset) {
      items.append(URLQueryItem(name: "\(prefix)Start", value: start.formatted(.iso8601)))
      items.append(URLQueryItem(name: "\(prefix)End", value: end.formatted(.iso8601)))
    }
    return items
  }

  /// Returns a signed request.
  ///
  /// A token that is refused is renewed once for all who have used it; when that is refused too, no request is made any more.
  private func get(_ path: String, _ items: [URLQueryItem]) async throws(ProviderError) -> TransportResponse {
    let token = try await tokens.current()
    var response = try await send(path, items, token)
    while response.status == 401 {
      let renewal = try await tokens.renewal(after: response.token)
      guard renewal.isTrial else {
        response = try await send(path, items, renewal.token)
        continue
      }
      do throws(ProviderError) { response = try await send(path, items, renewal.token) } catch {
        await tokens.endTrial(refusal: nil)
        throw error
      }
      let refusal = response.status == 401 ? WeatherKitResponse.error(response.response, at: now()) : nil
      await tokens.endTrial(refusal: refusal)
      if let refusal { throw refusal }
    }
    guard response.status == 200 else { throw WeatherKitResponse.error(response.response, at: now()) }
    return response.response
  }

  /// An answer, and the token that it was asked for with.
  private struct Answer {
    let response: TransportResponse
    let token: WeatherKitToken
    var status: Int { response.status }
  }

  private func send(_ path: String, _ items: [URLQueryItem], _ token: WeatherKitToken) async throws(ProviderError) -> Answer {
    Answer(response: try await send(path, items, headers: ["Authorization": "Bearer \(token.text)"]), token: token)
  }

  private func send(_ path: String, _ items: [URLQueryItem], headers: [String: String]) async throws(ProviderError) -> TransportResponse {
    var url = server.appending(path: path)
    if !items.isEmpty { url.append(queryItems: items) }
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

/// The marks that must be shown with WeatherKit's data.
public struct WeatherKitAttribution: Hashable, Sendable {
  /// The name of the service.
  public let serviceName: String
  /// The marks by their names, such as `logoDark@2x`.
  public let marks: [String: URL]

  init(_ body: Data, server: URL) throws(ProviderError) {
    let texts: [String: String]
    do { texts = try JSONDecoder().decode([String: String].self, from: body) } catch { throw .malformed("no attribution") }
    guard let serviceName = texts["serviceName"] else { throw .malformed("no attribution") }
    self.serviceName = serviceName
    var marks: [String: URL] = [:]
    // The paths are parts of the server's.
    for (name, path) in texts where name.hasPrefix("logo") { marks[name] = server.appending(path: path) }
    self.marks = marks
  }
}
