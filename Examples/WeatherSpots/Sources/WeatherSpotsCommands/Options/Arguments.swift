public import ArgumentParser
import Foundation
import Larder
public import WeatherSpotsKit

// The values of options and arguments that several commands read.

/// Parses a point, such as 48.39,-4.49.
func point(_ text: String) throws -> Coordinate {
  // A point may begin with a blank that `WeatherSpots.run` put there to hide its hyphen from the parser.
  let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { Double($0.trimmingPrefix(while: \.isWhitespace)) }
  guard parts.count == 2, let latitude = parts[0], let longitude = parts[1],
    let point = Coordinate(latitude: latitude, longitude: longitude)
  else { throw ValidationError("Expected a point LAT,LON in degrees, such as 48.39,-4.49.") }
  return point
}

/// Parses a day, such as 2026-11-21.
func dayArgument(_ text: String) throws -> LocalDay {
  guard let day = LocalDay(text) else { throw ValidationError("Expected a day yyyy-MM-dd, such as 2026-11-21.") }
  return day
}

/// Parses an instant, such as 2026-11-21T09:30:00Z.
func instantArgument(_ text: String) throws -> Date {
  do { return try Date(text, strategy: .iso8601) } catch {
    throw ValidationError("Expected an instant yyyy-MM-ddTHH:mm:ssZ, such as 2026-11-21T09:30:00Z.")
  }
}

/// Parses a tag, such as pier, and returns its normalized form.
func tagArgument(_ text: String) throws -> String {
  do throws(SpotProblem) { return try Spot.normalizedTag(text) } catch { throw ValidationError("Invalid tag: \(error).") }
}

/// Returns the ISO 3166 code of a country that is given by its code or its English name.
///
/// An empty text stays empty.
func countryArgument(_ text: String) throws -> String {
  // `edit --country ""` removes the country.
  if text.isEmpty { return "" }
  if let code = CountryNames.code(for: text) { return code }
  let near = CountryNames.labels(near: text)
  let hint = near.isEmpty ? "" : " Did you mean \(near.joined(separator: " or "))?"
  throw ValidationError("--country takes a code such as FR, or an English name such as France.\(hint)")
}

/// Option `--now`, which replaces the current time.
struct TimeOption: ParsableArguments, Sendable {
  @Option(help: ArgumentHelp("Use this instant as the current time.", valueName: "yyyy-MM-ddTHH:mm:ssZ"), transform: instantArgument)
  var now: Date?

  /// The clock of the command, stopped at `--now` if that is given.
  var clock: any WallClock { now.map { now in DateClock { now } } ?? SystemClock() }
}

extension SpotOrder: ExpressibleByArgument {}

extension UnitSystem: ExpressibleByArgument {}
