// larder/ reads arguments and hands them to LarderToolKit.
// Invariant: a command parses, calls the kit once, and writes what it returns. Called by people and scripts.

internal import ArgumentParser

/// The root command.
@main
struct LarderCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "larder",
    abstract: "Look into a Larder store, check it, and move its records.",
    discussion: """
      A store is a JSON file or a SQLite database that Larder has written. The reading commands open it beside a running app and change \
      nothing.

      Exit codes: 0 yes or done, 1 no (damaged, different, not found), 2 the store cannot be read or the request was refused, 64 the \
      arguments are wrong.
      """,
    subcommands: [
      Verify.self,
      Inspect.self,
      Get.self,
      Query.self,
      Dump.self,
      Diff.self,
      History.self,
      RepairCommand.self,
      LoadCommand.self,
      ConvertCommand.self,
      BackupCommand.self,
      RestoreCommand.self,
      ImportCommand.self,
      ResealCommand.self,
    ]
  )
}
