import Foundation
import Testing

/// The manual against the program's own description of its commands.
@Suite(.timeLimit(.minutes(15))) struct ManualTests {
  private struct Dump: Decodable { let command: Command }

  private struct Command: Decodable {
    let commandName: String
    let abstract: String?
    let discussion: String?
    let arguments: [Argument]?
    let subcommands: [Command]?

    /// This command and all below it, with their full names.
    func all(_ path: [String] = []) -> [(name: String, command: Command)] {
      let path = path + [commandName]
      return [(path.dropFirst().joined(separator: " "), self)] + (subcommands ?? []).flatMap { $0.all(path) }
    }
  }

  private struct Argument: Decodable {
    struct Name: Decodable {
      let kind: String
      let name: String
    }
    let kind: String
    let abstract: String?
    let valueName: String?
    let preferredName: Name?

    /// As the manual writes it.
    var text: String {
      if let name = preferredName { return name.kind == "long" ? "--\(name.name)" : "-\(name.name)" }
      return (valueName ?? "").uppercased()
    }
  }

  private static func commands() async throws -> [(name: String, command: Command)] {
    let run = try await weatherSpots(["--experimental-dump-help"])
    let all = try JSONDecoder().decode(Dump.self, from: Data(run.output.utf8)).command.all()
    return all.filter { $0.name != "help" && !$0.name.isEmpty }
  }

  /// The manual's sections by their titles.
  private static func sections() throws -> [String: String] {
    let file = URL(filePath: shippedSpots).deletingLastPathComponent().appending(path: "MANUAL.md")
    let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
    let parts = text.components(separatedBy: "\n## ").dropFirst()
    return Dictionary(
      parts.map { part in
        let lines = part.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
        return (String(lines[0]), lines.count > 1 ? String(lines[1]) : "")
      }, uniquingKeysWith: { $0 + $1 })
  }

  /// The options that are described once for many commands, by the section that a command's links to.
  private static let shared = [
    "Options of every command": "#options-of-every-command", "Options of commands that ask": "#options-of-commands-that-ask",
  ]

  @Test func everyCommandAndEveryOptionIsInTheManual() async throws {
    let sections = try Self.sections()
    let commands = try await Self.commands()
    #expect(commands.count > 20)
    for (name, command) in commands {
      guard let section = sections["`\(name)`"] else {
        Issue.record("the manual has no section `\(name)`")
        continue
      }
      var text = section
      for (title, link) in Self.shared where section.contains(link) { text += sections[title] ?? "" }
      for argument in command.arguments ?? [] where !["--help", "--version"].contains(argument.text) {
        #expect(text.contains("`\(argument.text)`") || text.contains("`\(argument.text) "), "`\(argument.text)` of \(name)")
      }
    }
  }

  @Test func theManualHasNoCommandAndNoOptionThatIsNotThere() async throws {
    let commands = Dictionary(uniqueKeysWithValues: try await Self.commands())
    for (title, text) in try Self.sections() where title.hasPrefix("`") {
      let name = title.trimmingCharacters(in: ["`"])
      guard let command = commands[name] else {
        Issue.record("there is no command \(name)")
        continue
      }
      let known = Set((command.arguments ?? []).map(\.text))
      // The bold options of a section are its own; others may be spoken of.
      for match in text.matches(of: /\n- `(--[a-z-]+)/) { #expect(known.contains(String(match.1)), "\(match.1) of \(name)") }
    }
  }

  @Test func everyCommandHasHelpThatExplainsItselfAndEveryOption() async throws {
    for (name, command) in try await Self.commands() {
      #expect((command.abstract ?? "").count > 10, "\(name) has no abstract")
      #expect((command.discussion ?? "").count > 40, "\(name) has no discussion")
      for argument in command.arguments ?? [] { #expect((argument.abstract ?? "").count > 5, "\(argument.text) of \(name) has no words") }
      let help = try await weatherSpots(name.split(separator: " ").map(String.init) + ["--help"])
      #expect(help.code == 0 && help.errors.isEmpty && help.output.hasPrefix("OVERVIEW: "))
    }
  }

  @Test func everyExitCodeIsInTheManualAndInTheFirstHelp() async throws {
    let help = try await weatherSpots(["--help"]).output
    let codes = help.matches(of: /\n  ([0-9]+) +[a-z]/).map { String($0.1) }
    let section = try #require(try Self.sections()["Exit codes"])
    #expect(codes.count >= 15)
    #expect(section.matches(of: /\n\| ([0-9]+) \|/).map { String($0.1) } == codes)
  }
}
