internal import ArgumentParser
internal import Foundation
internal import LarderServer

// The command reads arguments, calls the library, and prints. Invariant: output for programs goes to stdout, everything else to stderr.

/// Root command of `larder-server`.
@main
struct LarderServerCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larder-server", abstract: "Serves sync to the devices of apps that use Larder.",
    discussion: "Exit codes: 0 done, 1 a failure or a finding of doctor, 64 wrong arguments.", version: "0.1.0",
    subcommands: [Serve.self, BackUp.self, Restore.self, Token.self, Devices.self, Scopes.self, Purge.self, Doctor.self])

  /// Runs the command that the arguments name.
  ///
  /// The parser would only report an unexpected argument. So an unknown command is refused here, with a list of all commands.
  static func main() async {
    let names = configuration.subcommands.map { $0._commandName }
    if let first = CommandLine.arguments.dropFirst().first, !first.hasPrefix("-"), first != "help", !names.contains(first) {
      end(with: ValidationError("Expected a command (\(names.joined(separator: ", "))), found '\(first)'."))
    }
    do {
      var command = try await asyncParseAsRoot()
      // The synchronous `run()` of an asynchronous command is another method, which only prints the help.
      if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
    } catch {
      end(with: error)
    }
  }

  /// Ends the program with the parser's message and exit code.
  private static func end(with error: any Error) -> Never {
    let code = exitCode(for: error)
    // Help is the program's own text. A message may repeat an argument, which must not steer the terminal.
    guard code != .success else { exit(withError: error) }
    let lines = fullMessage(for: error).split(separator: "\n", omittingEmptySubsequences: false)
    // An exit code alone has no message, because its command has printed one.
    if lines != [""] { writeToStandardError(lines.map { printable(String($0)) + "\n" }.joined()) }
    Foundation.exit(code.rawValue)
  }
}

/// Returns a text with the characters escaped that steer a terminal: control characters, line ends and changes of direction.
func printable(_ text: String) -> String {
  let steering: Set<Unicode.GeneralCategory> = [.control, .lineSeparator, .paragraphSeparator]
  return text.unicodeScalars.reduce(into: "") { result, scalar in
    // Overrides of direction can make a line read otherwise than its bytes are.
    let turns = 0x202A...0x202E ~= scalar.value || 0x2066...0x2069 ~= scalar.value
    result += turns || steering.contains(scalar.properties.generalCategory) ? scalar.escaped(asASCII: true) : String(scalar)
  }
}

/// Prints an error in one line, and returns the exit code 1.
func fail(_ error: any Error) -> ExitCode {
  writeToStandardError("larder-server: \(printable("\(error)"))\n")
  return .failure
}

private func writeToStandardError(_ text: String) {
  // No other place is left to report that standard error cannot be written.
  do { try FileHandle.standardError.write(contentsOf: Data(text.utf8)) } catch {}
}
