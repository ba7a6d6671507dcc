import ArgumentParser

/// Stands where `serve` is in `weather-spots-page`, for whoever types it from habit.
struct ServeNotice: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Says how to show the page, which is a program of its own.",
    discussion: """
      The page is served by weather-spots-page, which is built apart since it needs a web server. Type `make page` in a clone of Larder. It has \
      all commands of this program, too.
      """)

  // Whatever options the page takes: none of them is to be a mistake here.
  @Argument(parsing: .allUnrecognized, help: "Options of the page; they are ignored.")
  var options: [String] = []

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    throw Failure(
      .usage,
      "the page is a program of its own: type `make page`, or build it with "
        + "`swift build --package-path Examples/WeatherSpotsPage --product weather-spots-page`")
  }
}
