import Larder
import LarderSync
import WeatherSpotsKit

/// A sync that goes on by itself, and writes what it does.
struct SyncWatch: Sendable {
  private let sync: SyncEngine
  private let storage: SpotStore
  private let isJSON: Bool

  /// The most changes of one commit that are written one by one for people: a first sync brings thousands.
  private static let most = 20

  init(_ sync: SyncEngine, _ storage: SpotStore, isJSON: Bool) {
    (self.sync, self.storage, self.isJSON) = (sync, storage, isJSON)
  }

  /// Syncs until the task is cancelled.
  func run() async throws {
    let changes = storage.spots.changes()
    await sync.start()
    let result: Result<Void, any Error>
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await writeStates() }
        group.addTask { for try await set in changes { try write(set.changes) } }
        // Whichever ends first, by a failure or by a signal, ends the other one.
        defer { group.cancelAll() }
        try await group.next()
      }
      result = .success(())
    } catch { result = .failure(error) }
    await sync.stop()
    try result.get()
  }

  /// Writes each state that says something new.
  private func writeStates() async throws {
    var last: StateLine?
    var isFirst = true
    for await status in sync.status {
      if status.phase == .exchanging || status.phase == .stopped || status.lastExchange == nil && status.lastError == nil { continue }
      let line = StateLine(status)
      guard line != last else { continue }
      last = line
      // What is unsent is about to be sent, and then the line says so.
      if line.problem == nil, line.unsent > 0, !isFirst { continue }
      isFirst = false
      if isJSON { try writeJSON(line) } else { try writeText(line.text) }
    }
  }

  /// Writes what came from the server, or was changed by another command.
  private func write(_ changes: [ChangeSet<Spot>.Change]) throws {
    for change in changes {
      if let error = change.error { note("a stored spot cannot be decoded and is kept unchanged: \(error)") }
    }
    if changes.count > Self.most, !isJSON { return try writeText("\(counted(changes.count, "change")) of spots.\n") }
    for change in changes {
      guard let news = SpotNews(change) else { continue }
      let isRemote = change.origin == .remote
      if isJSON {
        try writeJSON(ChangeLine(change: news.change, remote: isRemote, spot: news.spot))
      } else {
        try writeText(isRemote ? news.text : "\(news.text.dropLast())  (here)\n")
      }
    }
  }
}

/// A change of a spot for a machine.
private struct ChangeLine: Encodable {
  let change: String
  let remote: Bool
  let spot: Spot
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
