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
      The first time, the address of the server is needed; once it has answered, it is kept in the store, which is synced from then on. \
      The token of the server is the setting sync-token (WEATHER_SPOTS_SYNC_TOKEN). With --watch it goes on until Ctrl-C, sends what other \
      commands change in a SQLite store at once, and writes a line for each exchange and for each change that comes: + for a spot that came, \
      ~ for one that changed, - for one that went.
      """)

  @Argument(help: ArgumentHelp("The address of the server, such as http://127.0.0.1:8080.", valueName: "url"))
  var server: String?

  @Option(help: ArgumentHelp("The scope that the spots are in. (default: spots)", valueName: "name"))
  var scope: String?

  @Flag(help: "Stay, and sync whenever there is something to send or to take.")
  var watch = false

  @Option(help: ArgumentHelp("The time limit of an answer.", valueName: "seconds"))
  var timeout = 60.0

  @OptionGroup var time: TimeOption

  @OptionGroup var globals: GlobalOptions

  func validate() throws {
    if let server, Self.address(server) == nil {
      throw ValidationError("Expected the address of a server, such as http://127.0.0.1:8080, without a name, a password or a query in it.")
    }
    if let scope {
      // A store keeps the scope of its first sync for good, so a malformed one is refused before the store is opened.
      let isValid = (1...256).contains(scope.utf8.count) && scope.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
      guard isValid else {
        throw ValidationError("--scope takes 1 to 256 printable ASCII characters without blanks, quotation marks and backslashes.")
      }
    }
    guard (0.1...600).contains(timeout) else { throw ValidationError("--timeout takes 0.1 to 600 seconds.") }
  }

  func execute() async throws {
    let token = try Settings.load()[.syncToken]?.value
    let limit = Duration.milliseconds(Int(timeout * 1000))
    // Ctrl-C is the normal end of --watch and gives exit code 0. A single exchange that it interrupts has failed, and the next one resumes.
    if !watch { return try await sync(token, within: limit) }
    try await TerminationSignals().run { try await sync(token, within: limit) }
  }

  private func sync(_ token: String?, within limit: Duration) async throws {
    // The server is checked before the store is created: a mistyped address must not leave an empty store behind.
    if try !globals.hasStore {
      guard let server = server.flatMap(Self.address) else { throw SyncTargetProblem.none }
      try await SyncTarget(server: server, scope: scope ?? SyncTarget.standardScope).check(token: token, timeout: limit)
    }
    // Opened twice: a store attaches its outbox of unsent changes when it opens, and the target must be known then.
    _ = try await globals.withStore(creating: true) { storage in
      try await storage.setSyncTarget(server: server.flatMap(Self.address), scope: scope, token: token, timeout: limit)
    }
    // Watching polls for other commands' commits every 20 ms instead of 100, since each of them is to be sent at once.
    try await globals.withStore(clock: time.clock, following: watch ? .milliseconds(20) : nil) { storage in
      let sync = try await storage.sync(token: token, timeout: limit, clock: time.clock)
      try await watch ? SyncWatch(sync, storage, isJSON: globals.json).run() : exchange(sync, storage)
    }
  }

  /// Parses the address of a server, and rejects passwords, queries and fragments.
  ///
  /// The address is stored and shown, and paths are appended to it.
  private static func address(_ text: String) -> URL? {
    guard let url = Settings.server(text), url.user() == nil, url.password() == nil, url.query() == nil, url.fragment() == nil else {
      return nil
    }
    return url
  }

  private func exchange(_ sync: SyncEngine, _ storage: SpotStore) async throws {
    try await sync.exchange()
    let state = await sync.report(on: storage)
    if globals.json { return try writeJSON(state) }
    try writeText("Sent \(counted(state.status.pushed, "spot")), took \(state.status.pulled). \(state.text)")
  }
}
