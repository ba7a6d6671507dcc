// larder/ reads arguments and hands them to LarderToolKit.
// Invariant: a command parses, calls the kit once, and writes what it returns. Called by people and scripts.

internal import ArgumentParser
internal import Foundation
internal import LarderToolKit

/// The root command.
@main
struct LarderCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larder",
    abstract: "Look into a Larder store, check it, and move its records.",
    discussion: """
      A store is a JSON file or a SQLite database that Larder has written. The reading commands open it beside a running app and change \
      nothing.

      Exit codes: 0 yes or done, 1 no (damaged, different, not found), 2 the store cannot be read or the request was refused, 3 the command \
      failed after it had written, 64 the arguments are wrong.
      """,
    version: "0.1.0",
    subcommands: [
      Verify.self,
      Inspect.self,
      Get.self,
      Query.self,
      Dump.self,
      Diff.self,
      History.self,
      RepairCommand.self,
      LoadCommand.self,
      ConvertCommand.self,
      BackupCommand.self,
      RestoreCommand.self,
      ImportCommand.self,
      ResealCommand.self,
    ]
  )

  /// Runs the command that the arguments name.
  ///
  /// The parser would only say that a name is unexpected, so one that is no command is refused here with the nearest.
  static func main() async {
    let names = configuration.subcommands.map { $0._commandName }
    let arguments = CommandLine.arguments.dropFirst()
    let name = arguments.first == "help" ? arguments.dropFirst().first : arguments.first
    if let name, !name.hasPrefix("-"), name != "help", !names.contains(name) {
      let question = NearestName.question(about: name, among: names)
      end(with: ValidationError("expected a command, found \"\(name)\"\(question)"))
    }
    do {
      var command = try await asyncParseAsRoot()
      if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
    } catch {
      end(with: error)
    }
  }

  /// Ends the program as the parser would.
  private static func end(with error: any Error) -> Never {
    let code = exitCode(for: error)
    // Help is the program's own text. A message may repeat an argument, which must not steer the terminal.
    guard code != .success else { exit(withError: error) }
    let lines = fullMessage(for: error).split(separator: "\n", omittingEmptySubsequences: false)
    let text = lines == [""] ? "" : lines.map { TerminalText.escaped(String($0)) + "\n" }.joined()
    // There is nowhere left to say that standard error cannot be written.
    do { try FileHandle.standardError.write(contentsOf: Data(text.utf8)) } catch {}
    Foundation.exit(code.rawValue)
  }
}
