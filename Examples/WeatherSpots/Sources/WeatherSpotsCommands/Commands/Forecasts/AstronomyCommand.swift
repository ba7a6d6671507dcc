import ArgumentParser
import Foundation
import WeatherSpotsKit

struct AstronomyCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "astronomy",
    abstract: "Shows when Sun and Moon rise and set at a point.",
    discussion: """
      Computed here, without a network and without the store. The day is that of the zone, from its first instant to the next day's; what \
      happens twice in it is shown twice, and what does not happen is "none", or null with --json. A day that the zone skipped, such as \
      2011-12-30 in Pacific/Apia, is refused with exit code 64. Times are for sea level and a flat \
      horizon: upper limbs, 34 minutes of arc of refraction. Civil, nautical and astronomical twilight reach down to 6, 12 and 18 degrees. \
      Example: weather-spots astronomy 69.65,18.96 --zone Europe/Oslo --date 2025-07-27
      """)

  @Argument(help: ArgumentHelp("The point, in degrees north and east.", valueName: "lat,lon"), transform: point)
  var place: Coordinate

  @Option(help: "The time zone, such as Europe/Paris.", transform: Self.zone)
  var zone: TimeZone

  @Option(help: ArgumentHelp("The day. (default: today in the zone)", valueName: "yyyy-MM-dd"), transform: dayArgument)
  var date: LocalDay?

  @OptionGroup var textOptions: TextOptions
  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    let day = date ?? LocalDay(containing: Date(), in: zone)
    // A zone that crossed the date line has skipped a whole day, which has no instants to compute with.
    try day.check(in: zone)
    let astronomy = Astronomy(at: place, on: day, in: zone)
    if globals.json { try writeJSON(AstronomyRow(astronomy)) } else { try writeText(astronomy.text(textOptions.style())) }
  }

  private static func zone(_ name: String) throws -> TimeZone {
    guard let zone = TimeZone.named(name) else { throw ValidationError("Expected a time zone such as Europe/Paris.") }
    return zone
  }
}
