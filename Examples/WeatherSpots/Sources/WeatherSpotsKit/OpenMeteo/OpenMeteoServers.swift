public import Foundation

/// Where the services of Open-Meteo are.
public struct OpenMeteoServers: Sendable {
  let forecast: URL
  let marine: URL
  let geocoding: URL
  /// Which server it is, when it is not one of Open-Meteo's.
  let origin: String?
  /// The key of a customer, which is in every request and nowhere else.
  let apiKey: String?

  /// Another server that answers `/v1/forecast`, `/v1/marine` and `/v1/search`.
  public init(_ base: URL) {
    self.init(base, apiKey: nil)
  }

  private init(_ base: URL, apiKey: String?) {
    forecast = base
    marine = base
    geocoding = base
    origin = Self.origin(base)
    self.apiKey = apiKey
  }

  private init(forecast: String, marine: String, geocoding: String, apiKey: String? = nil) {
    self.forecast = URL(string: forecast) ?? URL(filePath: "/")
    self.marine = URL(string: marine) ?? URL(filePath: "/")
    self.geocoding = URL(string: geocoding) ?? URL(filePath: "/")
    origin = nil
    self.apiKey = apiKey
  }

  /// Open-Meteo's servers for customers, who have a key, or another server that takes one.
  public init(apiKey: String, at base: URL? = nil) {
    if let base {
      self.init(base, apiKey: apiKey)
    } else {
      self.init(
        forecast: "https://customer-api.open-meteo.com", marine: "https://customer-marine-api.open-meteo.com",
        geocoding: "https://customer-geocoding-api.open-meteo.com", apiKey: apiKey)
    }
  }

  /// Scheme, host, port and path: what tells one server from another.
  static func origin(_ url: URL) -> String {
    var path = url.path
    while path.hasSuffix("/") { path.removeLast() }
    return "\(url.scheme?.lowercased() ?? "http")://\(HostStates.host(url).lowercased())\(path)"
  }

  /// A URL of a service, with the key where there is one.
  func url(_ server: URL, _ path: String, _ items: [(String, String)]) -> URL {
    let all = items + (apiKey.map { [("apikey", $0)] } ?? [])
    return server.appending(path: path).appending(queryItems: all.map { URLQueryItem(name: $0.0, value: $0.1) })
  }

  /// The free servers of Open-Meteo, for non-commercial use.
  public static let openMeteo = OpenMeteoServers(
    forecast: "https://api.open-meteo.com", marine: "https://marine-api.open-meteo.com", geocoding: "https://geocoding-api.open-meteo.com")
}
