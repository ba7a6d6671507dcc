public import Foundation

/// Where the services of Open-Meteo are.
public struct OpenMeteoServers: Sendable {
  let forecast: URL
  let marine: URL
  let geocoding: URL

  /// Another server that answers `/v1/forecast`, `/v1/marine` and `/v1/search`.
  public init(_ base: URL) {
    forecast = base
    marine = base
    geocoding = base
  }

  private init(forecast: String, marine: String, geocoding: String) {
    self.forecast = URL(string: forecast) ?? URL(filePath: "/")
    self.marine = URL(string: marine) ?? URL(filePath: "/")
    self.geocoding = URL(string: geocoding) ?? URL(filePath: "/")
  }

  /// The free servers of Open-Meteo, for non-commercial use.
  public static let openMeteo = OpenMeteoServers(
    forecast: "https://api.open-meteo.com", marine: "https://marine-api.open-meteo.com", geocoding: "https://geocoding-api.open-meteo.com")
}
