/// Description of a command, as swift-argument-parser prints it with `--experimental-dump-help`.
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

      /// The name as a user types it.
      var text: String { kind == "long" ? "--\(name)" : "-\(name)" }
    }
    let kind: String
    let abstract: String?
    let valueName: String?
    let names: [Name]?
    let isOptional: Bool
    let isRepeating: Bool
    // False for options that are hidden from the help. They are left out of the manual too.
    let shouldDisplay: Bool
    let defaultValue: String?
  }
}
