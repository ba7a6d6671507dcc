import ArgumentParser
import Foundation
import Larder
import LarderSync
import WeatherSpotsKit

struct SyncConflicts: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "conflicts",
    abstract: "Lists the values that lost where two devices had changed the same field.",
    discussion: "Sends no request. With --clear, what was listed is forgotten.")

  @Flag(help: "Forget the values that were listed.")
  var clear = false

  @OptionGroup var globals: GlobalOptions

  func execute() async throws {
    try await globals.withStore { storage in
      let conflicts = try await storage.sync(token: nil).conflicts
      let found = try await conflicts.fetch(Query().sorted(by: \.date))
      if globals.json { try writeJSON(found.map(row)) } else { try writeText(text(found)) }
      // Only the listed conflicts are deleted, after they were written: one that arrives meanwhile is listed next time.
      if clear { for conflict in found { try await conflicts.delete(conflict.id) } }
    }
  }

  private func text(_ conflicts: [SyncConflict]) -> String {
    if conflicts.isEmpty { return "No conflicts.\n" }
    return conflicts.map { conflict in
      // The keys are sorted, because a dictionary has another order in each run. An empty key stands for the whole value of the spot.
      let lost = conflict.lost.sorted { $0.key < $1.key }.map { $0.key.isEmpty ? $0.value : "\($0.key) = \($0.value)" }
      return "\(conflict.recordID): \(lost.joined(separator: ", ")) of \(conflict.isLocal ? "this device" : "another device") lost.\n"
    }.joined()
  }

  private func row(_ conflict: SyncConflict) -> JSONRow {
    ["spot": conflict.recordID, "lost": conflict.lost, "local": conflict.isLocal, "date": conflict.date.formatted(.iso8601)]
  }
}
