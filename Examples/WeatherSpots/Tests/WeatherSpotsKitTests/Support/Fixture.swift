import Foundation
import Testing

@testable import WeatherSpotsKit

/// The recorded responses in Fixtures; where they come from is in ATTRIBUTION.md.
enum Fixture {
  static var directory: URL {
    get throws { try #require(Bundle.module.resourceURL).appending(path: "Fixtures") }
  }

  static func text(_ name: String) throws -> String {
    String(decoding: try Data(contentsOf: directory.appending(path: name)), as: UTF8.self)
  }

  static func response(_ name: String, status: Int = 200) throws -> TransportResponse {
    TransportResponse(status: status, body: try Data(contentsOf: directory.appending(path: name)))
  }

  static func names(_ prefix: String, _ suffix: String) -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.hasPrefix(prefix) && $0.hasSuffix(suffix) }
        .sorted()
    } catch { return ["no fixtures: \(error)"] }
  }
}

func instant(_ text: String) throws -> Date { try Date(text, strategy: .iso8601) }

func zone(_ name: String) throws -> TimeZone { try #require(TimeZone(identifier: name)) }

func localDay(_ text: String) throws -> LocalDay { try #require(LocalDay(text)) }

func server(_ text: String) throws -> OpenMeteoServers { .init(try #require(URL(string: text))) }

/// A metric body made of a recording in other units: only the names of the units are changed.
func metricBody(_ name: String) throws -> TransportResponse {
  let text = try Fixture.text(name).replacing("°F", with: "°C").replacing("mp/h", with: "km/h").replacing("\"inch\"", with: "\"mm\"")
    .replacing("\"kn\"", with: "\"km/h\"").replacing("\"ft\"", with: "\"m\"")
  return TransportResponse(status: 200, body: Data(text.utf8))
}
