public import Foundation

/// A place as a provider is asked about it: the key of data that do not belong to a day.
///
/// A cell about a kilometre wide, the zone that its days belong to, and the provider, whose data are never taken for those of another.
public struct ForecastPlace: Hashable, Codable, Sendable {
  /// The provider of the data: ``ForecastProvider/storageName``.
  public let provider: String
  /// The square.
  public let cell: GridCell
  /// The IANA name of the zone of its days.
  public let timezone: String
  /// The ISO 3166 code of the country where the provider needs it, else nothing.
  public let country: String

  /// Makes the key of a point.
  public init(provider: String, _ coordinate: Coordinate, timezone: String, country: String = "") {
    self.provider = provider
    cell = GridCell(coordinate)
    self.timezone = timezone
    self.country = country
  }

  /// The zone of its days; GMT if this system does not know the name.
  public var zone: TimeZone { TimeZone(identifier: timezone) ?? .gmt }
}

/// A place and some days from one on, in the place's own zone: the key of a forecast.
public struct ForecastPeriod: Hashable, Codable, Sendable {
  /// The place.
  public let place: ForecastPlace
  /// The first day.
  public let day: LocalDay
  /// The number of days: a week, or all that a service offers.
  public let days: Int

  /// The numbers of days that are asked for.
  ///
  /// There are two, so that looking at three days and then at five asks once.
  public static let spans = (week: 7, all: 16)

  /// Makes the key of some days from one on.
  public init(_ place: ForecastPlace, from day: LocalDay, days: Int = 1) {
    self.place = place
    self.day = day
    self.days = days <= Self.spans.week ? Self.spans.week : Self.spans.all
  }

  /// Returns the keys under which an answer that has rows of a day may be stored: of that day and the two before it, for a week or for all.
  ///
  /// Not further back: a forecast may be shown for two days.
  static func mayHold(_ day: LocalDay, at place: ForecastPlace) -> [ForecastPeriod] {
    (0...2).flatMap { back in
      [spans.week, spans.all].map { ForecastPeriod(place, from: day.advanced(by: -back), days: $0) }
    }
  }
}
