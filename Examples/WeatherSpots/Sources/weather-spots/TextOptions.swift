import ArgumentParser
import WeatherSpotsKit

/// The option of the commands that draw for people.
struct TextOptions: ParsableArguments {
  @Flag(help: "Write ASCII only, without colors and symbols.")
  var plain = false

  /// How standard output is written.
  func style(units: UnitSystem = .metric) -> CardStyle { .ofStandardOutput(isPlain: plain, units: units) }
}
