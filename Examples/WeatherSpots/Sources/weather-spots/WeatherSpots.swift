// The command: one file per subcommand in Commands/, each a few lines over WeatherSpotsKit. Options/ has the options that they share,
// Output/ writes text, JSON and failures.

import ArgumentParser
import Foundation

@main
struct WeatherSpots: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
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
        69  there is no forecast, icon or photo: the service is out or has none, and none is stored; or no sync
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
      Export.self, Forecast.self, Geocode.self, AstronomyCommand.self, Icon.self, Photo.self, Photos.self, Alerts.self, Sync.self,
      Serve.self, Widget.self, Cache.self, Verify.self,
      Migrate.self, Config.self, Man.self,
    ]
  )

  @OptionGroup var globals: GlobalOptions

  /// Lets a negative number, a point that begins with one, or a tag that goes stand as a value: the parser would take -33.9 for an option.
  static func main() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    do {
      var command = try await asyncParseAsRoot(CommandName.withValuesMarked(arguments))
      // The parser's help takes any name, and shows the help of all.
      if type(of: command)._commandName == "help" { refuseMistake(in: arguments) }
      do {
        if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
      } catch { exit(withError: error) }
    } catch {
      refuseMistake(in: arguments)
      exit(withError: error)
    }
  }

  /// Ends the program if there is no command of the name that was given.
  private static func refuseMistake(in arguments: [String]) {
    guard let mistake = CommandName.mistake(in: arguments) else { return }
    writeToStandardError("Error: \(Output.text(mistake))\n")
    _exit(Outcome.usage.rawValue)
  }
}
