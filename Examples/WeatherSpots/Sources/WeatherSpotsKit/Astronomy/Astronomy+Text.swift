public import Foundation

extension Astronomy {
  /// The day on some lines of text, in the clock time of its zone.
  public var text: String {
    var lines = [
      "\(Self.degrees(coordinate.latitude, "N", "S")), \(Self.degrees(coordinate.longitude, "E", "W")) | \(day) (\(zone.identifier))"
    ]
    lines.append(line("Sun", [Self.words(sun.state), "up to \(sun.altitudeDegrees.upperBound.text(decimals: 1))° high"]))
    lines.append(line("Sunrise", sun.rises.map(clock)))
    lines.append(line("Sunset", sun.sets.map(clock)))
    lines.append(line("Solar noon", sun.noon.map { [clock($0)] } ?? []))
    lines.append(line("Civil twilight", twilight(sun.civil)))
    lines.append(line("Nautical twilight", twilight(sun.nautical)))
    lines.append(line("Astronomical twilight", twilight(sun.astronomical)))
    lines.append(line("Moon", [Self.words(moon.state), moon.phase.name, "\((moon.illuminatedFraction * 100).text(decimals: 0)) % lit"]))
    lines.append(line("Moonrise", moon.rises.map(clock)))
    lines.append(line("Moonset", moon.sets.map(clock)))
    lines.append(line("Moon highest", moon.upperTransits.map(clock)))
    lines.append(line("Moon lowest", moon.lowerTransits.map(clock)))
    return lines.joined(separator: "\n") + "\n"
  }

  /// A moment's clock time in the zone, rounded to the minute, but never into another day.
  public func clock(_ moment: Date) -> String {
    let rounded = Date(timeIntervalSince1970: (moment.timeIntervalSince1970 / 60).rounded() * 60)
    return TimeLabel.clock(interval.start <= rounded && rounded < interval.end ? rounded : moment, in: zone)
  }

  private func line(_ name: String, _ parts: [String]) -> String {
    "  \(name.padding(toLength: 23, withPad: " ", startingAt: 0))\(parts.isEmpty ? "none" : parts.joined(separator: ", "))"
  }

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

  private static func degrees(_ value: Double, _ positive: String, _ negative: String) -> String {
    "\(abs(value).text(decimals: 4))° \(value < 0 ? negative : positive)"
  }
}
