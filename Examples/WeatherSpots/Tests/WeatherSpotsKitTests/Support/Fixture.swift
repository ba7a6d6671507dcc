import Foundation
import Testing

@testable import WeatherSpotsKit

/// The recorded responses in Fixtures; where they come from is in ATTRIBUTION.md.
enum Fixture {
  /// The folders of the recordings; each holds what begins with its name.
  private static let folders: Set = ["astronomy", "error", "forecast", "geocoding", "marine"]

  static func file(_ name: String) throws -> URL { try folder(of: name).appending(path: name) }

  private static func folder(of name: String) throws -> URL {
    let fixtures = try #require(Bundle.module.resourceURL).appending(path: "Fixtures")
    let kind = String(name.prefix { $0 != "-" })
    return folders.contains(kind) ? fixtures.appending(path: kind) : fixtures
  }

  static func text(_ name: String) throws -> String { String(decoding: try Data(contentsOf: file(name)), as: UTF8.self) }

  static func response(_ name: String, status: Int = 200) throws -> TransportResponse {
    TransportResponse(status: status, body: try Data(contentsOf: file(name)))
  }

  static func names(_ prefix: String, _ suffix: String) -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: folder(of: prefix).path)
        .filter { $0.hasPrefix(prefix) && $0.hasSuffix(suffix) }.sorted()
    } catch { return ["no fixtures: \(error)"] }
  }
}

func response(_ text: String, status: Int = 200) -> TransportResponse { TransportResponse(status: status, body: Data(text.utf8)) }

func instant(_ text: String) throws -> Date { try Date(text, strategy: .iso8601) }

func zone(_ name: String) throws -> TimeZone { try #require(TimeZone(identifier: name)) }

func localDay(_ text: String) throws -> LocalDay { try #require(LocalDay(text)) }

func server(_ text: String) throws -> OpenMeteoServers { .init(try #require(URL(string: text))) }

/// A metric body made of a recording in other units: only the names of the units are changed.
func metricBody(_ name: String) throws -> TransportResponse {
  let text = try Fixture.text(name).replacing("°F", with: "°C").replacing("mp/h", with: "km/h").replacing("\"inch\"", with: "\"mm\"")
    .replacing("\"kn\"", with: "\"km/h\"").replacing("\"ft\"", with: "\"m\"")
  return response(text)
}
