import ArgumentParser

/// Group of the commands about sync.
struct Sync: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Keeps the spots of several devices the same, by a larder-server.",
    discussion: """
      Spots with their ratings, notes, tags and visits are synced; forecasts are not. What is changed without a network is kept and sent \
      later. Visits of all devices add up, and tags come and go one by one. Where two devices have changed the same field otherwise, the \
      later change holds, and the other one is listed by `sync conflicts`.

      EXAMPLES
        weather-spots sync https://sync.example.org --scope user/42
        weather-spots sync --watch
      """,
    subcommands: [SyncExchange.self, SyncState.self, SyncConflicts.self, SyncRejected.self],
    defaultSubcommand: SyncExchange.self)
}
