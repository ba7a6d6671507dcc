public import Foundation

/// Whose weather is asked for where: the key of what does not belong to a day.
///
/// A cell about a kilometre wide, the zone that its days belong to, and the provider, whose data are never taken for those of another.
public struct Place: Hashable, Codable, Sendable {
  /// Whose data: ``ForecastProvider/storageName``.
  public let provider: String
  /// The square.
  public let cell: Cell
  /// The IANA name of the zone of its days.
  public let timezone: String
  /// The ISO 3166 code of the country where the provider needs it, else nothing.
  public let country: String

  /// Makes the key of a point.
  public init(provider: String, _ coordinate: Coordinate, timezone: String, country: String = "") {
    self.provider = provider
    cell = Cell(coordinate)
    self.timezone = timezone
    self.country = country
  }

  /// The same place of another provider.
  private init(_ place: Place, provider: String) {
    self.provider = provider
    cell = place.cell
    timezone = place.timezone
    country = place.country
  }

  /// Where earlier versions kept what a server answered that was asked in a provider's place, and the name of that server's host.
  ///
  /// They knew the server of each answer, but kept all under the name of the provider.
  var former: (place: Place, server: String)? {
    guard let range = provider.range(of: " at "), let server = URL(string: String(provider[range.upperBound...]))?.host() else {
      return nil
    }
    return (Place(self, provider: String(provider[..<range.lowerBound])), server)
  }

  /// The zone of its days; GMT if this system does not know the name.
  public var zone: TimeZone { TimeZone(identifier: timezone) ?? .gmt }
}

/// A place and some days from one on, in the place's own zone: the key of a forecast.
public struct PlaceDays: Hashable, Codable, Sendable {
  /// The place.
  public let place: Place
  /// The first day.
  public let day: LocalDay
  /// How many days: a week, or all that a service offers.
  public let days: Int

  /// The numbers of days that are asked for.
  ///
  /// There are two, so that looking at three days and then at five asks once.
  public static let spans = (week: 7, all: 16)

  /// Makes the key of some days from one on.
  public init(_ place: Place, from day: LocalDay, days: Int = 1) {
    self.place = place
    self.day = day
    self.days = days <= Self.spans.week ? Self.spans.week : Self.spans.all
  }

  /// The keys under which an answer that has rows of a day may be stored: of that day and the two before it, for a week or for all.
  ///
  /// Not further back: a forecast may be shown for two days.
  static func mayHold(_ day: LocalDay, at place: Place) -> [PlaceDays] {
    (0...2).flatMap { back in
      [spans.week, spans.all].map { PlaceDays(place, from: day.advanced(by: -back), days: $0) }
    }
  }
}
