import Foundation
import Testing

@Suite(.timeLimit(.minutes(15))) struct HelpTests {
  private static let commands = [
    "import", "add", "list", "near", "search", "show", "remove", "watch", "export", "forecast", "geocode", "astronomy", "icon", "photo",
    "photos", "widget", "verify", "migrate",
  ]

  @Test func theFirstHelpNamesEveryCommandAndExitCode() async throws {
    let help = try await weatherSpots(["--help"])
    #expect(help.code == 0)
    for command in Self.commands + ["alerts", "cache", "config"] { #expect(help.output.contains("\n  \(command) ")) }
    for code in [0, 1, 2, 3, 4, 28, 64, 65, 66, 69, 73, 74, 75, 76, 77, 78] { #expect(help.output.contains("\n  \(code) ")) }
  }

  @Test func withoutACommandTheHelpIsShown() async throws {
    #expect(try await weatherSpots([]) == weatherSpots(["--help"]))
  }

  @Test(arguments: commands) func everyCommandHasHelpThatExplainsItselfAndEveryOption(_ command: String) async throws {
    let help = try await weatherSpots(["help", command])
    #expect(try await weatherSpots([command, "--help"]) == help)
    #expect(help.code == 0 && help.errors.isEmpty)
    let parts = help.output.components(separatedBy: "\n\n")
    #expect(parts[0].hasPrefix("OVERVIEW: ") && parts[0].count > 20)
    #expect(!parts[1].hasPrefix("USAGE") && parts[1].count > 40)
    for option in ["--store <file>", "--json"] { #expect(help.output.contains("\n  \(option) ")) }
    for line in help.output.split(separator: "\n") where line.hasPrefix("  --") || line.hasPrefix("  <") {
      #expect(line.contains("   ") || line.count > 26, "no words beside \(line)")
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
