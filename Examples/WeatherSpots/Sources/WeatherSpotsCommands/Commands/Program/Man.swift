import ArgumentParser
import Foundation

struct Man: ReportingCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes the manual page weather-spots(1).",
    discussion: """
      It has the same text as the help of each command. Example: weather-spots man > weather-spots.1 && man ./weather-spots.1
      """)

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    let help = try JSONDecoder().decode(ManualPage.Dump.self, from: Data(WeatherSpots._dumpHelp().utf8))
    let page = ManualPage(help.command, version: WeatherSpots.configuration.version)
    if globals.json { try writeJSON(["page": page.text]) } else { try writeText(page.text) }
  }
}

/// A manual page in the language of man(7), made of the parser's description of all commands.
struct ManualPage {
  struct Dump: Decodable { let command: Command }

  struct Command: Decodable {
    let commandName: String
    let abstract: String?
    let discussion: String?
    let arguments: [Argument]?
    let subcommands: [Command]?
  }

  struct Argument: Decodable {
    struct Name: Decodable {
      let kind: String
      let name: String
    }
    let kind: String
    let shouldDisplay: Bool
    let abstract: String?
    let valueName: String?
    let preferredName: Name?
  }

  let text: String

  init(_ command: Command, version: String) {
    let (words, lists) = Self.split(command.discussion ?? "")
    var lines = [
      ".TH WEATHER-SPOTS 1 \"\" \"weather-spots \(version)\" \"User Commands\"", ".SH NAME",
      "weather-spots \\- \(Self.escaped(Self.sentence(command.abstract ?? "")))", ".SH SYNOPSIS", ".B weather-spots", ".I command",
      "[options]", ".SH DESCRIPTION",
    ]
    lines += Self.paragraphs(words)
    lines.append(".SH COMMANDS")
    for subcommand in command.subcommands ?? [] where subcommand.commandName != "help" { lines += Self.section(subcommand, []) }
    for (title, entries) in lists {
      lines.append(".SH \(title)")
      for entry in entries { lines += [Self.escaped(entry), ".br"] }
    }
    text = lines.joined(separator: "\n") + "\n"
  }

  private static func section(_ command: Command, _ path: [String]) -> [String] {
    let path = path + [command.commandName]
    let arguments = (command.arguments ?? []).filter { $0.shouldDisplay && $0.kind == "positional" }
    let operands = arguments.map { " \\fI\(escaped($0.valueName ?? ""))\\fR" }.joined()
    var lines = [".SS \"\(escaped(path.joined(separator: " ")))\(operands)\""] + paragraphs(command.abstract ?? "")
    lines += command.discussion.map { [".PP"] + paragraphs($0) } ?? []
    for argument in command.arguments ?? [] where argument.shouldDisplay {
      let value = argument.valueName.map(escaped) ?? ""
      let name =
        argument.preferredName.map { name in
          "\\fB\(escaped((name.kind == "long" ? "--" : "-") + name.name))\\fR" + (argument.kind == "option" ? " \\fI\(value)\\fR" : "")
        } ?? "\\fI\(value)\\fR"
      lines += [".TP", name] + paragraphs(argument.abstract ?? "")
    }
    for subcommand in command.subcommands ?? [] where subcommand.commandName != "help" { lines += section(subcommand, path) }
    return lines
  }

  /// Returns the paragraphs, and the lists that begin with a title in capital letters.
  private static func split(_ text: String) -> (words: String, lists: [(String, [String])]) {
    var (words, lists): ([String], [(String, [String])]) = ([], [])
    for part in text.components(separatedBy: "\n\n") {
      let lines = part.components(separatedBy: "\n")
      if let title = lines.first, lines.count > 1, title == title.uppercased() {
        lists.append((title, lines.dropFirst().map { $0.trimmingCharacters(in: .whitespaces) }))
      } else {
        words.append(part)
      }
    }
    return (words.joined(separator: "\n\n"), lists)
  }

  private static func paragraphs(_ text: String) -> [String] {
    Array(text.components(separatedBy: "\n\n").map { [escaped($0)] }.joined(separator: [".PP"]))
  }

  /// Returns a sentence without its point, as NAME wants it.
  private static func sentence(_ text: String) -> String { text.hasSuffix(".") ? String(text.dropLast()) : text }

  /// Text in which nothing is a request to the formatter.
  private static func escaped(_ text: String) -> String {
    let safe = text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("…", with: "...")
    return safe.split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.hasPrefix(".") || $0.hasPrefix("'") ? "\\&\($0)" : String($0) }.joined(separator: "\n")
  }
}
