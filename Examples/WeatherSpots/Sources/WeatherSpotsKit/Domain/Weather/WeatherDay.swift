public import Foundation

/// The weather of a day of the place's own zone; a value that the service did not give is `nil`, never 0.
public struct WeatherDay: Codable, Hashable, Sendable {
  /// The day.
  public var day: LocalDay
  /// The kind of weather, the most severe of the day.
  public var code: WeatherCode?
  /// The kind of weather in the words of a provider that has no WMO codes.
  public var condition: String?
  /// The lowest temperature, in degrees Celsius.
  public var lowestCelsius: Double?
  /// The highest temperature, in degrees Celsius.
  public var highestCelsius: Double?
  /// Rain, showers and snow, in millimetres of water.
  public var precipitationMillimeters: Double?
  /// The probability of precipitation, 0 to 100.
  public var precipitationPercent: Double?
  /// The strongest wind ten metres above the ground, in kilometres per hour.
  public var windKilometersPerHour: Double?
  /// The strongest gust, in kilometres per hour.
  public var gustKilometersPerHour: Double?
  /// The dominant direction that the wind comes from, in degrees clockwise from north.
  public var windDegrees: Double?
  /// The highest UV index.
  public var uvIndex: Double?

  init(_ day: LocalDay) { self.day = day }

  /// The kind of weather in words.
  public var words: String? { code?.description ?? condition }

  /// Whether there is anything to show.
  var hasValues: Bool {
    code != nil || condition != nil || lowestCelsius != nil || highestCelsius != nil || precipitationMillimeters != nil
      || windKilometersPerHour != nil
  }

  /// Returns the day of a zone that 24 hours from an instant on belong to, or `nil` where they are too much of another day.
  ///
  /// A service may cut days an hour beside the zone's midnight, after the clocks were switched or when it counts in winter time. More than
  /// three hours beside is another day.
  static func day(from start: Date, in zone: TimeZone) -> LocalDay? {
    guard LocalDay.holds(start) else { return nil }
    let day = LocalDay(containing: start + 43200, in: zone)
    return abs(day.interval(in: zone).start.timeIntervalSince(start)) <= 3 * 3600 ? day : nil
  }
}

/// A warning of an authority.
public struct WeatherAlert: Codable, Hashable, Sendable, Identifiable {
  /// The id that the provider gave it.
  public var id: String
  /// The danger that the warning is about.
  public var summary: String
  /// The area's name, where there is one.
  public var areaName: String?
  /// The authority that issued the warning.
  public var source: String
  /// The severity: minor, moderate, severe, extreme or unknown.
  public var severity: String
  /// The urgency, in the provider's words.
  public var urgency: String?
  /// The certainty, in the provider's words.
  public var certainty: String?
  /// The time at which the warning was issued, by which its revisions are ordered.
  public var issued: Date
  /// From when it holds.
  public var effective: Date
  /// Until when it holds.
  public var expires: Date
  /// The time at which the danger begins, where that is known.
  public var onset: Date?
  /// The time at which the danger ends, where that is known.
  public var end: Date?
  /// A page with details.
  public var details: URL?
}
