public import Foundation

/// The weather of one day in the place's own time zone.
///
/// A value that the service did not give is `nil`, never 0.
public struct WeatherDay: Codable, Hashable, Sendable {
  /// Calendar day in the place's time zone.
  public var day: LocalDay
  /// Most severe kind of weather of the day.
  public var code: WeatherCode?
  /// Kind of weather in the words of a provider that has no WMO codes.
  public var condition: String?
  /// Lowest temperature, in degrees Celsius.
  public var lowestCelsius: Double?
  /// Highest temperature, in degrees Celsius.
  public var highestCelsius: Double?
  /// Rain, showers and snow, in millimetres of water.
  public var precipitationMillimeters: Double?
  /// Probability of precipitation, 0 to 100.
  public var precipitationPercent: Double?
  /// Strongest wind ten metres above the ground, in kilometres per hour.
  public var windKilometersPerHour: Double?
  /// Strongest gust, in kilometres per hour.
  public var gustKilometersPerHour: Double?
  /// Dominant direction that the wind comes from, in degrees clockwise from north.
  public var windDegrees: Double?
  /// Highest UV index.
  public var uvIndex: Double?

  init(_ day: LocalDay) { self.day = day }

  /// Kind of weather in words.
  public var words: String? { code?.description ?? condition }

  /// Whether the day has any value to show.
  var hasValues: Bool {
    code != nil || condition != nil || lowestCelsius != nil || highestCelsius != nil || precipitationMillimeters != nil
      || windKilometersPerHour != nil
  }

  /// Returns the day in a time zone that matches the 24 hours from an instant, or `nil` if they begin over three hours off the day's start.
  ///
  /// A service may cut days an hour beside the zone's midnight, after a change of the clocks or when it counts in winter time.
  static func day(from start: Date, in zone: TimeZone) -> LocalDay? {
    // A malformed answer can contain any instant. The text of a year beyond 9999 could not be decoded again.
    guard LocalDay.holds(start) else { return nil }
    // The middle of the 24 hours: the start may lie an hour before midnight, in the day before.
    let day = LocalDay(containing: start + 43200, in: zone)
    return abs(day.interval(in: zone).start.timeIntervalSince(start)) <= 3 * 3600 ? day : nil
  }
}

/// A weather warning issued by an authority.
public struct WeatherAlert: Codable, Hashable, Sendable, Identifiable {
  /// Id of the warning at the provider.
  public var id: String
  /// Danger that the warning is about.
  public var summary: String
  /// Name of the area, if it has one.
  public var areaName: String?
  /// Authority that issued the warning.
  public var source: String
  /// Severity: minor, moderate, severe, extreme or unknown.
  public var severity: String
  /// Urgency, in the provider's words.
  public var urgency: String?
  /// Certainty, in the provider's words.
  public var certainty: String?
  /// Time at which the warning was issued, by which its revisions are ordered.
  public var issued: Date
  /// Time from which the warning is valid.
  public var effective: Date
  /// Time until which the warning is valid.
  public var expires: Date
  /// Time at which the danger begins, if that is known.
  public var onset: Date?
  /// Time at which the danger ends, if that is known.
  public var end: Date?
  /// A page with details.
  public var details: URL?
}
