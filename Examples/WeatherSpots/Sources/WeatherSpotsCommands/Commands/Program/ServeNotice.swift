import ArgumentParser

/// The command `serve` of `weather-spots`, which only says that `weather-spots-page` has it.
struct ServeNotice: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Says how to show the page, which is a program of its own.",
    discussion: """
      The page is served by weather-spots-page, which is built apart since it needs a web server. Type `make page` in a clone of Larder. It has \
      all commands of this program, too.
      """)

  // Takes the options of the page, so that none of them is reported as a mistake in place of the notice.
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
