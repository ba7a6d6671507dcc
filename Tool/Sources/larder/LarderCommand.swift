// larder/ parses arguments and calls LarderToolKit.
// Invariant: a command parses, calls the kit once, and writes the result. Called by people and scripts.

internal import ArgumentParser
internal import Foundation
internal import LarderToolKit

/// Root command `larder`, which has the other commands as subcommands.
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

  /// Runs the subcommand in the arguments.
  ///
  /// An unknown name is refused here with the most similar command. The parser would only report an unexpected argument.
  static func main() async {
    let names = configuration.subcommands.map { $0._commandName }
    let arguments = CommandLine.arguments.dropFirst()
    // `help` of an unknown command would print the general help, as if the command existed.
    let name = arguments.first == "help" ? arguments.dropFirst().first : arguments.first
    if let name, !name.hasPrefix("-"), name != "help", !names.contains(name) {
      let question = NearestName.question(about: name, among: names)
      end(with: ValidationError("expected a command, found \"\(name)\"\(question)"))
    }
    do {
      // `run` of an asynchronous command must be awaited. The other one is for the parser's own commands, such as `help`.
      var command = try await asyncParseAsRoot()
      if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
    } catch {
      end(with: error)
    }
  }

  /// Ends the program with the message and exit code of an error, as the parser would.
  private static func end(with error: any Error) -> Never {
    let code = exitCode(for: error)
    // Help is the program's own text and is printed unchanged. A message may repeat an argument, which must not control the terminal.
    guard code != .success else { exit(withError: error) }
    let lines = fullMessage(for: error).split(separator: "\n", omittingEmptySubsequences: false)
    let text = lines == [""] ? "" : lines.map { TerminalText.escaped(String($0)) + "\n" }.joined()
    // If the standard error is closed, there is no place left to report that.
    do { try FileHandle.standardError.write(contentsOf: Data(text.utf8)) } catch {}
    Foundation.exit(code.rawValue)
  }
}
