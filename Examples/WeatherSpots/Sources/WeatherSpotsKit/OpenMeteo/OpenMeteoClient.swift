public import Foundation

/// Asks Open-Meteo for the hours around one day at one place, weather and sea side by side.
public struct OpenMeteoClient: Sendable {
  /// Where the two services are.
  public struct Servers: Sendable {
    let forecast: URL
    let marine: URL

    /// Another server that answers both `/v1/forecast` and `/v1/marine`.
    public init(_ base: URL) {
      forecast = base
      marine = base
    }

    private init(forecast: String, marine: String) {
      self.forecast = URL(string: forecast) ?? URL(filePath: "/")
      self.marine = URL(string: marine) ?? URL(filePath: "/")
    }

    /// The free servers of Open-Meteo, for non-commercial use.
    public static let openMeteo = Servers(forecast: "https://api.open-meteo.com", marine: "https://marine-api.open-meteo.com")
  }

  private let servers: Servers
  private let transport: any Transport
  private let timeout: Duration

  /// Makes a client; each request gets the time limit.
  public init(servers: Servers = .openMeteo, transport: any Transport = URLSessionTransport(), timeout: Duration = .seconds(10)) {
    self.servers = servers
    self.transport = transport
    self.timeout = timeout
  }

  /// The host that is asked for the weather.
  public var host: String { servers.forecast.host() ?? "the server" }

  /// Fetches a day.
  ///
  /// A failure of the sea never sinks the weather: it becomes a state of the forecast.
  public func fetch(_ key: DayForecast.Key, at now: Date) async throws(OpenMeteoError) -> DayForecast {
    async let sea = result { () throws(OpenMeteoError) in try await seaHours(key) }
    let weather = try await get(servers.forecast, "/v1/forecast", WeatherHour.variables.map(\.name), Self.metric, key)
    var forecast = DayForecast(
      id: key, fetchedAt: now, server: host, isRecorded: weather.isRecorded, hours: try WeatherHour.hours(weather.hourly), sea: .noCoverage)
    forecast.add(await sea)
    return forecast
  }

  private func seaHours(_ key: DayForecast.Key) async throws(OpenMeteoError) -> [SeaHour] {
    try SeaHour.hours(try await get(servers.marine, "/v1/marine", SeaHour.variables.map(\.name), [("length_unit", "metric")], key).hourly)
  }

  private static let metric = [("temperature_unit", "celsius"), ("wind_speed_unit", "kmh"), ("precipitation_unit", "mm")]

  private func get(
    _ server: URL, _ path: String, _ variables: [String], _ units: [(String, String)], _ key: DayForecast.Key
  ) async throws(OpenMeteoError) -> (hourly: OpenMeteoResponse, isRecorded: Bool) {
    // Three days of UTC hold the wanted day of every zone, and labels in GMT need no rule about clocks.
    let query = [
      ("latitude", key.cell.center.latitude.text(decimals: 5)), ("longitude", key.cell.center.longitude.text(decimals: 5)),
      ("hourly", variables.joined(separator: ",")), ("timezone", "GMT"),
      ("start_date", "\(key.day.advanced(by: -1))"), ("end_date", "\(key.day.advanced(by: 1))"),
    ]
    let url = server.appending(path: path).appending(queryItems: (query + units).map { URLQueryItem(name: $0, value: $1) })
    let response: TransportResponse
    do throws(TransportError) { response = try await transport.get(url, timeout: timeout) } catch { throw .network(error) }
    return (try OpenMeteoResponse(response), response.isRecorded)
  }
}

/// Turns a failure into a value, so that one of two requests may fail.
private func result<Value, Failure: Error>(_ body: () async throws(Failure) -> Value) async -> Result<Value, Failure> {
  do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
}
