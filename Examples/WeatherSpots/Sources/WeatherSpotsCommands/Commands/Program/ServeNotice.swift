import ArgumentParser

/// Placeholder for the command `serve`, which points to the separate program `weather-spots-page`.
struct ServeNotice: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Says how to show the page, which is a program of its own.",
    discussion: """
      The page is served by weather-spots-page, which is built apart since it needs a web server. Type `make page` in a clone of Larder. It has \
      all commands of this program, too.
      """)

  // Accepts the page's options, so that the notice appears and not an error about an unknown option.
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
