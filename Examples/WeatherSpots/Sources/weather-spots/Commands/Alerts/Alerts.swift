import ArgumentParser

/// The group of the commands about warnings.
struct Alerts: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Watches the spots for warnings, and tells of each once.",
    discussion: """
      Spots near each other are asked for together: one question for each cell of about five kilometres. What is new is put into a queue in \
      the store before anybody is told, so that nothing is lost or told twice when the program is killed.
      """,
    subcommands: [AlertsWatch.self, AlertsList.self, AlertsSimulate.self])
}
