import ArgumentParser

/// Group of the commands about weather warnings.
struct Alerts: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Watches the spots for warnings, and reports each once.",
    discussion: """
      Spots near each other share one call: one for each cell of about five kilometres. New warnings are queued in \
      the store before they are delivered, so that none is lost or repeated when the program is killed.
      """,
    subcommands: [AlertsWatch.self, AlertsList.self])
}
