// The command-line program: one file per subcommand in Commands/, shared options in Options/, and text, JSON and failures in Output/.
// The work itself is done by WeatherSpotsKit. This is a library because weather-spots-page links it and adds the command `serve`.

public import ArgumentParser
import Foundation

/// Root command of weather-spots, with all its subcommands.
public struct WeatherSpots: AsyncParsableCommand, Sendable {
  /// Help, version and subcommands of weather-spots.
  public static let configuration = CommandConfiguration(
    commandName: "weather-spots",
    abstract: "Keeps your places, and their weather, on this machine.",
    discussion: """
      Spots are imported from CSV files or added one by one, and are kept in one store file, which survives crashes and power cuts. Forecasts \
      come from Open-Meteo, are cached for an hour, and are shown with their age when there is no network. \
      Several commands may use one SQLite store at a time; a JSON store has one user at a time.

      EXAMPLES
        weather-spots geocode Brest --add
        weather-spots forecast Brest --days 3
        weather-spots forecast --all

      EXIT CODES
        0   done
        1   a failure not listed here
        2   no such spot, or no store yet
        3   the name fits several spots; they are listed
        4   the forecast shown is only the last known one
        28  the disk is full
        64  the command was not understood, or has a page token that does not fit it
        65  the input has bad rows; nothing of it was imported
        66  the input cannot be read
        69  there is no forecast or photo: the service is out or has none, and none is stored; or no sync
        73  the output cannot be written
        74  the store cannot be read or written
        75  the store is in use by another process
        76  the store is damaged, foreign, newer or incomplete, or a spot of it cannot be migrated; that was left as it is
        77  the store may not be opened: permissions; or the server does not take the token
        78  the configuration file or a variable of the environment is not understood
      """,
    version: "0.1.0",
    subcommands: [
      Import.self, Add.self, List.self, Near.self, Search.self, Show.self, Edit.self, Tag.self, Visit.self, Remove.self, Watch.self,
      Export.self, Forecast.self, Geocode.self, AstronomyCommand.self, Photo.self, Photos.self, Alerts.self, Sync.self,
      ServeNotice.self, Widget.self, Cache.self, Verify.self,
      Migrate.self, Config.self,
    ]
  )

  @OptionGroup var globals: GlobalOptions

  /// Creates the command without arguments, as `ParsableCommand` requires.
  public init() {}

  /// Returns the configuration of a program that has all commands of weather-spots, and another command `serve`.
  ///
  /// - Parameters:
  ///   - name: The name of the program.
  ///   - serve: The command `serve`.
  public static func configuration(named name: String, serving serve: any ParsableCommand.Type) -> CommandConfiguration {
    var configuration = configuration
    configuration.commandName = name
    configuration.subcommands = configuration.subcommands.map { $0 == ServeNotice.self ? serve : $0 }
    return configuration
  }

  /// Runs a command with the arguments of this process, and exits.
  ///
  /// Negative numbers, points with a negative latitude and removed tags may be given as values. The parser alone would take -33.9 for an
  /// option.
  /// - Parameter program: The command with all subcommands: this one, or one with the configuration of ``configuration(named:serving:)``.
  public static func run<Program: AsyncParsableCommand>(as program: Program.Type) async {
    do {
      var command = try await program.asyncParseAsRoot(withValuesMarked(Array(CommandLine.arguments.dropFirst())))
      // Through the existential the compiler would choose the synchronous `run()`, which only prints the help.
      if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
    } catch { end(program, with: error) }
  }

  /// Returns the arguments with a blank before each value that begins with a hyphen.
  ///
  /// Such values are numbers and points of any command, and the tags that `tag` removes. Options have two hyphens, except -h.
  private static func withValuesMarked(_ arguments: [String]) -> [String] {
    let commands = configuration.subcommands.map { $0._commandName }
    // Only `tag` has removals: elsewhere -x is a mistyped option, which the parser must report.
    let isTag = arguments.first(where: commands.contains) == "tag"
    return arguments.map { argument in
      let isNumber = argument.prefixMatch(of: /-\.?[0-9]/) != nil
      let isRemoval = isTag && argument != "-h" && argument.prefixMatch(of: /-[^-]/) != nil
      return isNumber || isRemoval ? " \(argument)" : argument
    }
  }

  /// Prints the message for an error, and exits as the parser would.
  private static func end(_ program: (some ParsableCommand).Type, with error: any Error) -> Never {
    let code = program.exitCode(for: error)
    // Help is the program's own text. An error message may repeat an argument, whose control characters could steer the terminal.
    guard code != .success else { program.exit(withError: error) }
    let lines = program.fullMessage(for: error).split(separator: "\n", omittingEmptySubsequences: false)
    if lines != [""] { writeToStandardError(lines.map { Output.text(String($0)) + "\n" }.joined()) }
    Foundation.exit(code.rawValue)
  }
}
