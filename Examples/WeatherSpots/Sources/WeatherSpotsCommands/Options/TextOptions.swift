import ArgumentParser
import Synchronization
import WeatherSpotsKit

/// Option `--plain` of the commands that write text for people.
struct TextOptions: ParsableArguments {
  @Flag(help: "Write ASCII only, without colors and symbols.")
  var plain = false

  func validate() throws {
    // The flag is global because errors and notes are written outside the command, and `--plain` covers them too.
    if plain { Output.isPlain.withLock { $0 = true } }
  }

  /// Returns the width, colors and units for standard output.
  func style(units: UnitSystem = .metric) -> CardStyle { .ofStandardOutput(isPlain: plain, units: units) }
}
