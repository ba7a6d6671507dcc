import Astronomy
public import Foundation

/// The picture of a kind of weather: a name that does not depend on whose pictures are used.
///
/// | codes | name |
/// | --- | --- |
/// | 0 | `clear-day`, `clear-night` |
/// | 1 | `mainly-clear-day`, `mainly-clear-night` |
/// | 2 | `partly-cloudy-day`, `partly-cloudy-night` |
/// | 3 | `overcast` |
/// | 45, 48 | `fog` |
/// | 51, 53, 55 | `drizzle` |
/// | 56, 57 | `freezing-drizzle` |
/// | 61, 63, 65 | `rain` |
/// | 66, 67 | `freezing-rain` |
/// | 71, 73, 75, 77 | `snow` |
/// | 80, 81, 82 | `rain-showers-day`, `rain-showers-night` |
/// | 85, 86 | `snow-showers-day`, `snow-showers-night` |
/// | 95 | `thunderstorm` |
/// | 96, 99 | `thunderstorm-hail` |
public struct WeatherIcon: Hashable, Sendable {
  /// The name, of lower-case letters and hyphens.
  public let name: String

  /// Makes the icon of a kind of weather; `nil` for a code that the table does not have.
  ///
  /// - Parameters:
  ///   - code: The WMO code.
  ///   - isDay: Whether the Sun is up; it matters where the sky shows.
  public init?(_ code: WeatherCode, isDay: Bool) {
    switch code.rawValue {
    case 0: name = isDay ? "clear-day" : "clear-night"
    case 1: name = isDay ? "mainly-clear-day" : "mainly-clear-night"
    case 2: name = isDay ? "partly-cloudy-day" : "partly-cloudy-night"
    case 3: name = "overcast"
    case 45, 48: name = "fog"
    case 51, 53, 55: name = "drizzle"
    case 56, 57: name = "freezing-drizzle"
    case 61, 63, 65: name = "rain"
    case 66, 67: name = "freezing-rain"
    case 71, 73, 75, 77: name = "snow"
    case 80, 81, 82: name = isDay ? "rain-showers-day" : "rain-showers-night"
    case 85, 86: name = isDay ? "snow-showers-day" : "snow-showers-night"
    case 95: name = "thunderstorm"
    case 96, 99: name = "thunderstorm-hail"
    default: return nil
    }
  }

  /// Makes the icon of a kind of weather over a point at an instant.
  public init?(_ code: WeatherCode, at coordinate: Coordinate, _ instant: Date, in zone: TimeZone) {
    let day = Astronomy(at: coordinate, on: LocalDay(containing: instant, in: zone), in: zone)
    self.init(code, isDay: day.sun.isUp(at: instant))
  }
}

/// The template of icon URLs: http or https, with `{icon}` in the place of the name.
///
/// Nothing is built in: whoever uses icons knows whose they may use.
public struct IconTemplate: Hashable, Sendable {
  /// The placeholder of the name.
  public static let placeholder = "{icon}"
  private let text: String

  /// Reads a template; `nil` unless every name makes a URL of its own, with http or https and a host.
  public init?(_ text: String) {
    self.text = text
    guard let day = url("clear-day"), let night = url("clear-night"), let key = ImageFetcher.key(of: day),
      key != ImageFetcher.key(of: night)
    else { return nil }
  }

  /// Returns the URL of an icon.
  public func url(of icon: WeatherIcon) -> URL? { url(icon.name) }

  private func url(_ name: String) -> URL? {
    let filled = text.replacing(Self.placeholder, with: name)
    // Another placeholder, or half of one, would be sent to the server as it is.
    return filled.contains(where: { "{} ".contains($0) }) ? nil : URL(string: filled)
  }
}
