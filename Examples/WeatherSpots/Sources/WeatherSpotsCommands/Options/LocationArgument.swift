import Foundation
import Larder
import WeatherSpotsKit

/// A place on the command line: the name or id of a spot, or a point.
struct LocationArgument {
  let text: String
  let zone: String?

  /// Returns whether a text is meant as a point and not as a name.
  static func isPoint(_ text: String) -> Bool {
    text.wholeMatch(of: /\s*-?[0-9]*\.?[0-9]+\s*,\s*-?[0-9]*\.?[0-9]+\s*/) != nil
  }

  /// Returns the spot, or a nameless one at the point; its zone is that of a spot near by, or is asked for and then kept.
  func spot(_ storage: SpotStore, _ options: ProviderOptions) async throws -> Spot {
    guard Self.isPoint(text) else {
      do { return try await storage.spot(named: text) } catch let failure as Failure where failure.outcome == .notFound {
        let name = text.replacing("\"", with: "")
        throw Failure(.notFound, "\(failure.message); `weather-spots geocode \"\(name)\"` searches for the place, and --add adds it")
      }
    }
    let point = try point(text)
    let timezone: String
    if let zone {
      timezone = zone
    } else if let near = try await storage.spots.first(.spots(near: point, within: .kilometers(25))) {
      timezone = near.timezone
    } else {
      do {
        timezone = try await options.geocoding(storage).zone(of: point)
      } catch {
        throw Failure(
          .noForecast, "the time zone of the point is unknown (\(WeatherProblem(error))); give it with --zone, such as --zone Europe/Paris")
      }
    }
    let name = "\(point.latitude.text(decimals: 4)),\(point.longitude.text(decimals: 4))"
    do { return try Spot(name: name, latitude: point.latitude, longitude: point.longitude, timezone: timezone) } catch {
      throw Failure(.usage, "invalid point: \(error)")
    }
  }
}
