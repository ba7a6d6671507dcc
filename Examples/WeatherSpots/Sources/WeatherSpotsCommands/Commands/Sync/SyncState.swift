import ArgumentParser
import Foundation
import Larder
import LarderSync
import WeatherSpotsKit

struct SyncState: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Says with what the store is synced, and what is unsent.",
    discussion: "Sends no request, and so cannot say what is new at the server.")

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    let state = try await globals.withStore { storage in
      // Without a target the counts would all be zero and look like a completed sync.
      guard storage.syncTarget != nil else { throw SyncTargetProblem.none }
      let sync = try await storage.sync(token: nil)
      return await sync.report(on: storage)
    }
    if globals.json { try writeJSON(state) } else { try writeText(state.text) }
  }
}

/// Target and counts of a store's sync, as written for a person or as JSON.
struct SyncReport: Encodable {
  let target: SyncTarget?
  let status: SyncStatus

  var text: String {
    "Synced with \(target?.server.absoluteString ?? "") in the scope \(target?.scope ?? ""): \(status.pending) unsent, "
      + "\(counted(status.conflicts, "conflict")), \(status.rejected) rejected.\n"
  }

  func encode(to encoder: any Encoder) throws {
    let row: JSONRow = [
      "server": target?.server.absoluteString ?? "", "scope": target?.scope ?? "", "pending": status.pending, "inFlight": status.inFlight,
      "pushed": status.pushed, "pulled": status.pulled, "rejected": status.rejected, "conflicts": status.conflicts,
    ]
    try row.encode(to: encoder)
  }
}

extension SyncEngine {
  /// Returns the sync target and counts of a store.
  func report(on storage: SpotStore) -> SyncReport { SyncReport(target: storage.syncTarget, status: status.current) }
}
