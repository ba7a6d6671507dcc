import ArgumentParser
import Foundation
import Larder
import LarderSync
import WeatherSpotsKit

struct SyncExchange: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "exchange",
    abstract: "Sends what the server does not have, and takes what is new there.",
    discussion: """
      The first time, the address of the server is needed; it is kept in the store, which is synced from then on. The token of the server \
      is the setting sync-token (WEATHER_SPOTS_SYNC_TOKEN). With --watch it goes on until Ctrl-C, and writes a line whenever something \
      has changed.
      """)

  @Argument(help: ArgumentHelp("The address of the server, such as http://127.0.0.1:8080.", valueName: "url"))
  var server: String?

  @Option(help: ArgumentHelp("The scope that the spots are in. (default: spots)", valueName: "name"))
  var scope: String?

  @Flag(help: "Stay, and sync whenever there is something to send or to take.")
  var watch = false

  @OptionGroup var time: TimeOption

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    if let server, Settings.server(server) == nil {
      throw ValidationError("Expected the address of a server, such as http://127.0.0.1:8080")
    }
  }

  func execute() async throws {
    let ending = TerminationSignals()
    let token = try Settings.load()[.syncToken]?.value
    // With another target, the store is to be opened anew: whatever it does with spots then has to know of it.
    _ = try await globals.withStore(creating: true) { try await $0.setSyncTarget(server: server.flatMap(Settings.server), scope: scope) }
    try await globals.withStore(clock: time.clock) { storage in
      let sync = try await storage.sync(token: token, clock: time.clock)
      let isWatching = watch
      try await ending.run { if isWatching { try await follow(sync) } else { try await exchange(sync, storage) } }
    }
  }

  private func exchange(_ sync: SyncEngine, _ storage: SpotStore) async throws {
    try await sync.exchange()
    let state = await sync.report(on: storage)
    if globals.json { return try writeJSON(state) }
    try writeText("Sent \(counted(state.pushed, "spot")), took \(state.pulled). \(state.text)")
  }

  /// Syncs until the task is cancelled, and writes each state that says something new.
  private func follow(_ sync: SyncEngine) async throws {
    await sync.start()
    var last: StateLine?
    for await status in sync.status {
      if status.phase == .exchanging || status.phase == .stopped { continue }
      let line = StateLine(status)
      guard line != last else { continue }
      last = line
      if globals.json { try writeJSON(line) } else { try writeText(line.text) }
    }
    await sync.stop()
  }
}

/// A status as one line.
private struct StateLine: Encodable, Equatable {
  let unsent: Int
  let rejected: Int
  let conflicts: Int
  let problem: String?
  let sent: Int
  let taken: Int

  init(_ status: SyncStatus) {
    (unsent, rejected, conflicts) = (status.pending, status.rejected, status.conflicts)
    (sent, taken) = (status.pushed, status.pulled)
    problem = status.lastError.map { Failure($0).message }
  }

  var text: String {
    if let problem { return "Waiting, \(unsent) unsent: \(problem)\n" }
    return "In sync: \(sent) sent, \(taken) taken, \(unsent) unsent, \(counted(conflicts, "conflict")), \(rejected) rejected.\n"
  }
}
