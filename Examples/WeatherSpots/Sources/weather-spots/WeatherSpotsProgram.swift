import WeatherSpotsCommands

// The program is one line, because weather-spots-page needs the commands as a library.
@main enum WeatherSpotsProgram {
  static func main() async { await WeatherSpots.run(as: WeatherSpots.self) }
}
