import Foundation
import Testing

@testable import WeatherSpotsKit

/// The servers that get the key of a customer.
@Suite(.timeLimit(.minutes(15))) struct OpenMeteoServersTests {
  private func query(_ base: String) throws -> String {
    let url: URL = try #require(URL(string: base))
    let servers = OpenMeteoServers(apiKey: "secret-1", at: url)
    return try #require(servers.url(servers.forecast, "/v1/forecast", [("latitude", "1")]).query())
  }

  @Test(arguments: [
    "https://open-meteo.com", "https://customer-api.open-meteo.com", "https://API.Open-Meteo.com:443/x", "http://127.0.0.1:8080",
    "http://127.1.2.3", "http://localhost:81", "http://[::1]:8080", "https://localhost",
  ])
  func openMeteoAndThisMachineGetTheKey(_ base: String) throws { #expect(try query(base) == "latitude=1&apikey=secret-1") }

  @Test(arguments: [
    "http://open-meteo.com", "http://api.open-meteo.com", "https://example.org", "https://evil-open-meteo.com",
    "https://open-meteo.com.example.org", "https://open-meteo.com@example.org", "https://example.org%2F.open-meteo.com",
    "https://example.org/open-meteo.com", "http://127.0.0.1.example.org", "http://localhost.example.org", "http://192.168.0.1",
    "http://[::2]",
  ])
  func nobodyElseDoes(_ base: String) throws { #expect(try query(base) == "latitude=1") }

  @Test func theServersForCustomersGetTheKey() throws {
    let servers = OpenMeteoServers(apiKey: "secret-1")
    for server in [servers.forecast, servers.marine, servers.geocoding] {
      #expect(servers.url(server, "/x", []).query() == "apikey=secret-1")
    }
  }
}
