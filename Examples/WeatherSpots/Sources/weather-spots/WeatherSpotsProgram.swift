import WeatherSpotsCommands

@main enum WeatherSpotsProgram {
  static func main() async { await WeatherSpots.run(as: WeatherSpots.self) }
}
