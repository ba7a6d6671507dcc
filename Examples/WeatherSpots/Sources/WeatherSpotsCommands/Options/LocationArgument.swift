import Foundation
import Larder
import WeatherSpotsKit

/// Place on the command line: the name or id of a spot, or a point.
struct LocationArgument {
  let text: String
  let zone: String?

  /// Returns true if a text is two numbers with a comma, and so a point and not a name.
  static func isPoint(_ text: String) -> Bool {
    // Only the shape is matched: a point outside the earth must be refused as a point, and not looked up as a name.
    text.wholeMatch(of: /\s*-?[0-9]*\.?[0-9]+\s*,\s*-?[0-9]*\.?[0-9]+\s*/) != nil
  }

  /// Returns the named spot, or an unsaved spot at the point.
  ///
  /// The zone of a point is the one given, that of a spot within 25 km, or the answer of the geocoding service, which is cached.
  func spot(_ storage: SpotStore, _ options: ProviderOptions) async throws -> Spot {
    guard Self.isPoint(text) else {
      do { return try await storage.spot(named: text) } catch let failure as Failure where failure.outcome == .notFound {
        // The name stands in quotation marks in the suggested command.
        let name = text.replacing("\"", with: "")
        throw Failure(.notFound, "\(failure.message); `weather-spots geocode \"\(name)\"` searches for the place, and --add adds it")
      }
    }
    let point = try point(text)
    let timezone: String
    if let zone {
      timezone = zone
    } else if let near = try await storage.spots.first(.spots(near: point, within: .kilometers(25))) {
      // A stored neighbour saves a request, and gives an answer without a network.
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
