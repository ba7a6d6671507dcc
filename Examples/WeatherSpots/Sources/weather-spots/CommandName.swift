import ArgumentParser
import WeatherSpotsKit

/// The names of commands, as they are typed.
enum CommandName {
  /// What is wrong with the name of a command, with those that may have been meant; `nil` when it is one, or none was given.
  static func mistake(in arguments: [String]) -> String? {
    var words: [String] = []
    var rest = arguments[...]
    while let word = rest.popFirst() {
      if word == "--store" {
        rest = rest.dropFirst()
      } else if word == "--" {
        break
      } else if !word.hasPrefix("-") {
        words.append(word)
      }
    }
    if words.first == "help" { words.removeFirst() }
    var (command, path): (any ParsableCommand.Type, String) = (WeatherSpots.self, "")
    for word in words {
      let known = command.configuration.subcommands
      // Below the commands are arguments, which have no names.
      guard !known.isEmpty else { return nil }
      guard let next = known.first(where: { $0._commandName == word }) else {
        let names = known.map { $0._commandName }
        let near = NearNames.names(near: word, in: names)
        let hint = near.isEmpty ? "" : "; did you mean \(near.map { "`weather-spots \(path)\($0)`" }.joined(separator: " or "))?"
        return "there is no command \"\(path)\(word)\"\(hint)\n`weather-spots --help` lists all."
      }
      (command, path) = (next, "\(path)\(word) ")
    }
    return nil
  }
}
