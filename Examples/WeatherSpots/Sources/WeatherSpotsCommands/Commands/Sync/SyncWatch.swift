import Larder
import LarderSync
import WeatherSpotsKit

/// Continuous sync that writes a line for each exchange and each change.
struct SyncWatch: Sendable {
  private let sync: SyncEngine
  private let storage: SpotStore
  private let isJSON: Bool

  /// Maximum number of changes of one commit that are listed one by one in text output.
  ///
  /// A first sync can bring thousands of changes.
  private static let most = 20

  init(_ sync: SyncEngine, _ storage: SpotStore, isJSON: Bool) {
    (self.sync, self.storage, self.isJSON) = (sync, storage, isJSON)
  }

  /// Syncs until the task is cancelled.
  func run() async throws {
    // Subscribed before the sync starts, or the changes of the first exchange would be missing.
    let changes = storage.spots.changes()
    await sync.start()
    let result: Result<Void, any Error>
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await writeStates() }
        group.addTask { for try await set in changes { try write(set.changes) } }
        // The group waits for both children, and neither ends by itself after the other has failed.
        defer { group.cancelAll() }
        try await group.next()
      }
      result = .success(())
    } catch { result = .failure(error) }
    // Also after a failure: the store is closed next, and a running exchange would still write to it.
    await sync.stop()
    try result.get()
  }

  /// Writes each sync status that differs from the last one written.
  private func writeStates() async throws {
    var last: StateLine?
    var isFirst = true
    for await status in sync.status {
      // An exchange in progress and a status from before the first exchange have no result to show.
      if status.phase == .exchanging || status.phase == .stopped || status.lastExchange == nil && status.lastError == nil { continue }
      let line = StateLine(status)
      guard line != last else { continue }
      last = line
      // Unsent changes are sent by the next exchange, whose line then includes them. Only the first line shows them.
      if line.problem == nil, line.unsent > 0, !isFirst { continue }
      isFirst = false
      if isJSON { try writeJSON(line) } else { try writeText(line.text) }
    }
  }

  /// Writes the changes of one commit, which came from the server or from another command.
  private func write(_ changes: [ChangeSet<Spot>.Change]) throws {
    for change in changes {
      // Reported before the summary of a large commit, which is a single line and would leave undecodable spots out.
      if let error = change.error { note("a stored spot cannot be decoded and is kept unchanged: \(error)") }
    }
    if changes.count > Self.most, !isJSON { return try writeText("\(counted(changes.count, "change")) of spots.\n") }
    for change in changes {
      guard let news = SpotNews(change) else { continue }
      let isRemote = change.origin == .remote
      if isJSON {
        try writeJSON(["change": news.change, "remote": isRemote, "spot": news.spot] as JSONRow)
      } else {
        // The text of `SpotNews` ends in a line break, and the mark for a change of this machine belongs before the line break.
        try writeText(isRemote ? news.text : "\(news.text.dropLast())  (here)\n")
      }
    }
  }
}

/// One line of output for a sync status.
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
    // `Failure` gives the problem the same words as `sync` without --watch.
    problem = status.lastError.map { Failure($0).message }
  }

  var text: String {
    if let problem { return "Waiting, \(unsent) unsent: \(problem)\n" }
    return "In sync: \(sent) sent, \(taken) taken, \(unsent) unsent, \(counted(conflicts, "conflict")), \(rejected) rejected.\n"
  }
}
