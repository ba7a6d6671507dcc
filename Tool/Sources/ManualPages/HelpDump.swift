/// The description of a command that swift-argument-parser prints with `--experimental-dump-help`.
struct HelpDump: Decodable {
  let command: Command

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

      /// As it is typed.
      var text: String { kind == "long" ? "--\(name)" : "-\(name)" }
    }
    let kind: String
    let abstract: String?
    let valueName: String?
    let names: [Name]?
    let isOptional: Bool
    let isRepeating: Bool
    let shouldDisplay: Bool
    let defaultValue: String?
  }
}
