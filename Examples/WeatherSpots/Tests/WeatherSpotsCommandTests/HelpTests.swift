import Foundation
import Testing

@Suite(.timeLimit(.minutes(15))) struct HelpTests {
  private static let commands = [
    "import", "add", "list", "near", "search", "show", "remove", "watch", "export", "forecast", "geocode", "astronomy", "photo",
    "photos", "widget", "verify", "migrate",
  ]

  @Test func theFirstHelpNamesEveryCommandAndExitCode() async throws {
    let help = try await weatherSpots(["--help"])
    #expect(help.code == 0)
    for command in Self.commands + ["alerts", "cache", "config"] { #expect(help.output.contains("\n  \(command) ")) }
    for code in [0, 1, 2, 3, 4, 28, 64, 65, 66, 69, 73, 74, 75, 76, 77, 78] { #expect(help.output.contains("\n  \(code) ")) }
  }

  @Test func withoutACommandTheHelpIsShown() async throws { #expect(try await weatherSpots([]) == weatherSpots(["--help"])) }

  private struct Dump: Decodable { let command: Command }

  private struct Command: Decodable {
    struct Argument: Decodable {
      let abstract: String?
      let valueName: String?
    }
    let commandName: String
    let abstract: String?
    let discussion: String?
    let arguments: [Argument]?
    let subcommands: [Command]?

    /// This command and all below it, each with its words.
    func all(_ path: [String]) -> [(words: [String], command: Command)] {
      [(path, self)] + (subcommands ?? []).flatMap { $0.all(path + [$0.commandName]) }
    }
  }

  @Test func everyCommandHasHelpThatExplainsItselfAndEveryOption() async throws {
    let dump = try await weatherSpots(["--experimental-dump-help"])
    let commands = try JSONDecoder().decode(Dump.self, from: Data(dump.output.utf8)).command.all([])
    #expect(commands.count > 20)
    for (words, command) in commands where words.last != "help" {
      #expect((command.abstract ?? "").count > 10, "\(words) has no abstract")
      #expect((command.discussion ?? "").count > 40, "\(words) has no discussion")
      for argument in command.arguments ?? [] {
        #expect((argument.abstract ?? "").count > 5, "\(argument.valueName ?? "") of \(words) has no words")
      }
      let help = try await weatherSpots(words + ["--help"])
      #expect(help.code == 0 && help.errors.isEmpty && help.output.hasPrefix("OVERVIEW: "))
    }
  }

  @Test func whatIsNotUnderstoodIsAMistakeOfUsage() async throws {
    for arguments in [
      ["dance"], ["list", "--limit", "-1"], ["list", "--store", "spots.txt"], ["import"], ["import", "x", "--batch", "0"],
      ["list", "--min-rating", "6"], ["list", "--sort", "size"], ["list", "--near", "1,2", "--sort", "name"], ["near"], ["near", "91,0"],
      ["near", "1,2", "--within", "-1"], ["near", "1,2", "--limit", "0"], ["search"],
      ["photo", "Brest"], ["photo", "Brest", "ftp://x/y.png"], ["photo", "Brest", "pier.jpg"], ["photos", "burn"],
      ["add", "A", "1", "2", "--zone", "GMT", "--rating", "6"],
    ] {
      let run = try await weatherSpots(arguments)
      #expect(run.code == 64)
      #expect(run.output.isEmpty)
    }
  }
}
