import Foundation
import Subprocess
import Testing

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// The help, of which the manual is made, and the completions.
@Suite(.timeLimit(.minutes(15))) struct ManualTests {
  private struct Dump: Decodable { let command: Command }

  private struct Command: Decodable {
    struct Argument: Decodable { let abstract: String? }
    let commandName: String
    let discussion: String?
    let arguments: [Argument]?
    let subcommands: [Command]?

    var all: [Command] { [self] + (subcommands ?? []).flatMap(\.all) }
  }

  @Test func `every command and option has words, and every command names its exit codes`() async throws {
    let dump = try await larder("--experimental-dump-help").output
    let commands = try JSONDecoder().decode(Dump.self, from: Data(dump.utf8)).command.all.filter { $0.commandName != "help" }
    #expect(commands.count >= 8)
    for command in commands {
      #expect(command.discussion?.contains("Exit codes: 0") == true, "\(command.commandName)")
      #expect(command.arguments?.allSatisfy { $0.abstract?.isEmpty == false } ?? true, "\(command.commandName): an option without words")
    }
  }

  @Test func `bash understands the completions`() async throws {
    for shell in ["bash", "zsh", "fish"] {
      let run = try await larder("--generate-completion-script", shell)
      #expect(run.code == 0 && run.output.contains("larder"))
      guard shell == "bash" else { continue }
      let check = try await Subprocess.run(
        .name("bash"), arguments: ["-n"], input: .string(run.output), output: .string(limit: 1 << 16), error: .string(limit: 1 << 16))
      #expect(check.terminationStatus == .exited(0) && check.standardError.isEmpty)
    }
  }
}
