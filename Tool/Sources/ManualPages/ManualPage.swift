/// Page of the manual for one command, in the macros of man(7).
struct ManualPage {
  /// Commands from the root to the one of this page.
  let path: [HelpDump.Command]

  /// File name of the page, such as `larder-dump.1`.
  var fileName: String { path.map(\.commandName).joined(separator: "-") + ".1" }

  /// Returns the pages of a command and all its subcommands.
  static func all(of command: HelpDump.Command, below path: [HelpDump.Command] = []) -> [ManualPage] {
    let path = path + [command]
    // The parser adds a command `help` to every command. It needs no page.
    let inner = (command.subcommands ?? []).filter { $0.commandName != "help" }
    return [ManualPage(path: path)] + inner.flatMap { all(of: $0, below: path) }
  }

  private var title: String { path.map(\.commandName).joined(separator: "-") }
  private var name: String { path.map(\.commandName).joined(separator: " ") }

  /// Source text of the page.
  var text: String {
    guard let command = path.last else { return "" }
    let arguments = (command.arguments ?? []).filter(\.shouldDisplay)
    // The date stays empty, since the same description must give the same bytes.
    var lines = [".TH \(title.uppercased()) 1 \"\" \"Larder\" \"Larder\""]
    lines += [".SH NAME", "\(Self.escaped(title)) \\- \(Self.escaped(command.abstract ?? ""))"]
    lines += [".SH SYNOPSIS", ".B \(Self.escaped(name))"] + arguments.map(Self.synopsis)
    if command.subcommands?.isEmpty == false { lines.append(".I command") }
    lines.append(".SH DESCRIPTION")
    for (index, paragraph) in (command.discussion ?? "").split(separator: "\n\n").enumerated() {
      if index > 0 { lines.append(".PP") }
      lines.append(Self.escaped(paragraph.replacing("\n", with: " ")))
    }
    if !arguments.isEmpty { lines.append(".SH OPTIONS") }
    for argument in arguments { lines += [".TP", Self.heading(argument), Self.escaped(argument.abstract ?? "")] }
    let inner = (command.subcommands ?? []).filter { $0.commandName != "help" }
    if !inner.isEmpty { lines.append(".SH COMMANDS") }
    for command in inner {
      lines += [".TP", ".BR \(Self.escaped("\(title)-\(command.commandName)")) (1)", Self.escaped(command.abstract ?? "")]
    }
    if path.count > 1, let root = path.first { lines += [".SH SEE ALSO", ".BR \(root.commandName) (1)"] }
    return lines.joined(separator: "\n") + "\n"
  }

  private static func value(_ argument: HelpDump.Argument) -> String { "\\fI\(escaped(argument.valueName ?? ""))\\fR" }

  private static func synopsis(_ argument: HelpDump.Argument) -> String {
    var text = value(argument)
    if let name = argument.names?.first { text = "\\fB\(escaped(name.text))\\fR" + (argument.kind == "option" ? " \(text)" : "") }
    if argument.isRepeating { text += "..." }
    return argument.isOptional ? "[\(text)]" : text
  }

  private static func heading(_ argument: HelpDump.Argument) -> String {
    guard let names = argument.names, !names.isEmpty else { return value(argument) }
    let text = names.map { "\\fB\(escaped($0.text))\\fR" }.joined(separator: ", ")
    return argument.kind == "option" ? "\(text) \(value(argument))" : text
  }

  /// Returns a text with the characters escaped that roff interprets.
  private static func escaped(_ text: some StringProtocol) -> String {
    let text = String(text).replacing("\\", with: "\\e").replacing("-", with: "\\-")
    // A line that begins with a period or an apostrophe would be read as a macro.
    return text.hasPrefix(".") || text.hasPrefix("'") ? "\\&\(text)" : text
  }
}
