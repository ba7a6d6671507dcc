import ArgumentParser
import Foundation
import WeatherSpotsKit

/// The names of a program's commands, as they are typed.
struct CommandNames {
  private let program: any ParsableCommand.Type

  init(_ program: any ParsableCommand.Type) { self.program = program }

  /// Returns a message about an unknown command, with those of similar names; `nil` when it is known, or none was given.
  ///
  /// For arguments that the parser has refused, or taken for a request for help.
  func mistake(in arguments: [String]) -> String? {
    // These are the parser's own, and what follows them is for it.
    let own = ["--generate-completion-script", "---completion", "--experimental-"]
    if let first = arguments.first, own.contains(where: first.hasPrefix) { return nil }
    var (command, path): (any ParsableCommand.Type, String) = (program, "")
    for (index, word) in words(in: arguments).enumerated() where index > 0 || word != "help" {
      let known = command.configuration.subcommands
      // Below the commands are arguments, which have no names.
      guard !known.isEmpty else { return nil }
      guard let next = known.first(where: { $0._commandName == word }) else {
        let names = known.map { $0._commandName }
        let near = NearNames.names(near: word, in: names)
        // `sync URL` is `sync exchange URL`.
        if command.configuration.defaultSubcommand != nil, near.isEmpty || word.contains(":") { return nil }
        let hint = near.isEmpty ? "" : "; did you mean \(near.map { "`weather-spots \(path)\($0)`" }.joined(separator: " or "))?"
        return "unknown command \"\(path)\(word)\"\(hint)\n`weather-spots --help` lists all."
      }
      (command, path) = (next, "\(path)\(word) ")
    }
    return nil
  }

  /// Returns the arguments that are neither options nor their values: the names of the command, and what it is about.
  ///
  /// They are found as they are asked for: which options have values takes longer than most commands.
  private func words(in arguments: [String]) -> some Sequence<String> {
    sequence(state: (rest: arguments[...], options: Set<String>?.none)) { state in
      while let word = state.rest.popFirst(), word != "--" {
        if !word.hasPrefix("-") { return word }
        guard word != "--help" else { continue }
        let options = state.options ?? optionsWithValues
        state.options = options
        if options.contains(word) { state.rest = state.rest.dropFirst() }
      }
      state.rest = []
      return nil
    }
  }

  /// Returns the arguments with a blank before those that begin with a hyphen and are values.
  ///
  /// They are numbers and points of any command, and the tags that `tag` removes; options have two hyphens, but for -h.
  func withValuesMarked(_ arguments: [String]) -> [String] {
    let isTag = arguments.contains("tag") && words(in: arguments).first { _ in true } == "tag"
    return arguments.map { argument in
      let isNumber = argument.prefixMatch(of: /-\.?[0-9]/) != nil
      let isRemoval = isTag && argument != "-h" && argument.prefixMatch(of: /-[^-]/) != nil
      return isNumber || isRemoval ? " \(argument)" : argument
    }
  }

  /// The options of all commands that take a value, as they are typed.
  private var optionsWithValues: Set<String> {
    let help: ManualPage.Dump
    do { help = try JSONDecoder().decode(ManualPage.Dump.self, from: Data(program._dumpHelp().utf8)) } catch { return ["--store"] }
    func options(_ command: ManualPage.Command) -> [String] {
      let own = (command.arguments ?? []).filter { $0.kind == "option" }.compactMap(\.preferredName)
      return own.map { ($0.kind == "long" ? "--" : "-") + $0.name } + (command.subcommands ?? []).flatMap(options)
    }
    return Set(options(help.command))
  }
}
