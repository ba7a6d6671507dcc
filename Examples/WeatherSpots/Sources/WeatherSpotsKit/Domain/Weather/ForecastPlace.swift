public import Foundation

/// The cache key of weather data of a place that do not belong to a day.
///
/// It consists of a grid cell about a kilometre wide, the time zone of its days, and the provider, so that the data of two providers are
/// never mixed.
public struct ForecastPlace: Hashable, Codable, Sendable {
  /// Provider of the data: ``ForecastProvider/storageName``.
  public let provider: String
  /// Grid cell that contains the place.
  public let cell: GridCell
  /// IANA name of the time zone of its days.
  public let timezone: String
  /// ISO 3166 code of the country if the provider needs it, else an empty text.
  public let country: String

  /// Creates the key of a point.
  public init(provider: String, _ coordinate: Coordinate, timezone: String, country: String = "") {
    self.provider = provider
    // The cell and not the point, so that spots on one beach share an entry and a request.
    cell = GridCell(coordinate)
    self.timezone = timezone
    self.country = country
  }

  /// Time zone of its days, or GMT if this system has no zone of that name.
  public var zone: TimeZone { TimeZone(identifier: timezone) ?? .gmt }
}

/// The cache key of a forecast: a place, a first day in the place's time zone, and a number of days.
public struct ForecastPeriod: Hashable, Codable, Sendable {
  /// Key of the place.
  public let place: ForecastPlace
  /// First day of the forecast.
  public let day: LocalDay
  /// Number of days, either a week or the maximum of a service.
  public let days: Int

  /// The two numbers of days that are requested from a service.
  ///
  /// With only two, showing three days and then five needs one request.
  public static let spans = (week: 7, all: 16)

  /// Creates the key of a forecast, with a length of a week if that covers the number of days, else of 16 days.
  public init(_ place: ForecastPlace, from day: LocalDay, days: Int = 1) {
    self.place = place
    self.day = day
    self.days = days <= Self.spans.week ? Self.spans.week : Self.spans.all
  }

  /// Returns the cache keys of all forecasts that may contain rows of a day.
  ///
  /// These are the keys of both lengths that begin on that day or on the two days before it. An older forecast is not shown, because a
  /// forecast is shown for at most two days.
  static func mayHold(_ day: LocalDay, at place: ForecastPlace) -> [ForecastPeriod] {
    (0...2).flatMap { back in
      [spans.week, spans.all].map { ForecastPeriod(place, from: day.advanced(by: -back), days: $0) }
    }
  }
}
