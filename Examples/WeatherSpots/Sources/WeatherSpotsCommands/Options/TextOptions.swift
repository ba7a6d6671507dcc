import ArgumentParser
import Synchronization
import WeatherSpotsKit

/// The option of the commands that draw for people.
struct TextOptions: ParsableArguments {
  @Flag(help: "Write ASCII only, without colors and symbols.")
  var plain = false

  func validate() throws {
    if plain { Output.isPlain.withLock { $0 = true } }
  }

  /// Returns how standard output is written.
  func style(units: UnitSystem = .metric) -> CardStyle { .ofStandardOutput(isPlain: plain, units: units) }
}
