import ArgumentParser
import WeatherSpotsCommands

/// The program: all commands of weather-spots, and `serve`.
@main struct WeatherSpotsPage: AsyncParsableCommand {
  static let configuration = WeatherSpots.configuration(named: "weather-spots-page", serving: Serve.self)

  @OptionGroup var globals: GlobalOptions

  static func main() async { await WeatherSpots.run(as: Self.self) }
}
