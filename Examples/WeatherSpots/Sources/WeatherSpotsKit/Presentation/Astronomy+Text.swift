import Astronomy
public import Foundation

extension Astronomy {
  /// Returns the Sun's and Moon's moments of the day as lines of text, with clock times of the day's zone.
  public func text(_ style: CardStyle = CardStyle()) -> String {
    let place = [Self.degrees(coordinate.latitude, "N", "S", style), Self.degrees(coordinate.longitude, "E", "W", style)]
    let highest = "up to \(style.angle(sun.altitudeDegrees.upperBound, decimals: 1)) high"
    let rows: [(String, [String])] = [
      ("Sun", [Self.words(sun.state), highest]), ("Sunrise", sun.rises.map(clock)), ("Sunset", sun.sets.map(clock)),
      ("Solar noon", sun.noon.map { [clock($0)] } ?? []), ("Civil twilight", twilight(sun.civil)),
      ("Nautical twilight", twilight(sun.nautical)), ("Astronomical twilight", twilight(sun.astronomical)),
      ("Moon", [Self.words(moon.state), moon.phase.name, "\((moon.illuminatedFraction * 100).text(decimals: 0)) % lit"]),
      ("Moonrise", moon.rises.map(clock)), ("Moonset", moon.sets.map(clock)), ("Moon highest", moon.upperTransits.map(clock)),
      ("Moon lowest", moon.lowerTransits.map(clock)),
    ]
    // A zone that moved across the date line has skipped a whole day, whose interval is then empty.
    let isSkipped = interval.duration == 0
    let title = style.wrapped("\(place.joined(separator: ", ")) | \(day) (\(zone.identifier))")
    let lines =
      isSkipped
      ? ["  " + Self.skipped(by: zone)]
      : rows.flatMap { label, parts in
        style.lines(label, parts.isEmpty ? ["none"] : parts, labelColumns: 23)
      }
    return (title.map { style.paint($0, .bold) } + lines).map { $0 + "\n" }.joined()
  }

  /// Returns the clock time of a moment in the zone, rounded to the minute but never into another day.
  public func clock(_ moment: Date) -> String {
    let rounded = Date(timeIntervalSince1970: (moment.timeIntervalSince1970 / 60).rounded() * 60)
    // 23:59:40 would round to 0:00, which belongs to the next day and would stand in the wrong list.
    return TimeLabel.clock(interval.start <= rounded && rounded < interval.end ? rounded : moment, in: zone)
  }

  /// Returns the text shown for a day that the zone's calendar skipped.
  static func skipped(by zone: TimeZone) -> String { "no such day: \(zone.identifier) skipped it" }

  private func twilight(_ twilight: SunDay.Twilight) -> [String] {
    twilight.dawns.map { "from \(clock($0))" } + twilight.dusks.map { "until \(clock($0))" }
  }

  private static func words(_ state: HorizonState) -> String {
    switch state {
    case .risesAndSets: "rises and sets"
    case .risesOnly: "rises and stays up"
    case .setsOnly: "sets and stays down"
    case .alwaysUp: "up all day"
    case .alwaysDown: "down all day"
    }
  }

  private static func degrees(_ value: Double, _ positive: String, _ negative: String, _ style: CardStyle) -> String {
    // The letter N, S, E or W carries the sign.
    "\(style.angle(abs(value), decimals: 4)) \(value < 0 ? negative : positive)"
  }
}
