import ArgumentParser
import WeatherSpotsCommands

/// Program `weather-spots-page`, with all commands of weather-spots and `serve`.
@main struct WeatherSpotsPage: AsyncParsableCommand {
  static let configuration = WeatherSpots.configuration(named: "weather-spots-page", serving: Serve.self)

  @OptionGroup var globals: GlobalOptions

  // ArgumentParser's own `main()` would take a negative number such as -33.9 for an option.
  static func main() async { await WeatherSpots.run(as: Self.self) }
}
