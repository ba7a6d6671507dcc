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
      if let other = conflict.duplicateOf {
        return "\(conflict.recordID): has the same values as \(other) in \(conflict.index ?? "a unique index").\n"
      }
      // Nothing has lost where one device has deleted a spot that another one had changed: the spot stays.
      if conflict.lost.isEmpty { return "\(conflict.recordID): deleted, and kept, because another device had changed it.\n" }
      // The keys are sorted, because a dictionary has another order in each run. An empty key stands for the whole value of the spot.
      let lost = conflict.lost.sorted { $0.key < $1.key }.map { $0.key.isEmpty ? $0.value : "\($0.key) = \($0.value)" }
      return "\(conflict.recordID): \(lost.joined(separator: ", ")) of \(conflict.isLocal ? "this device" : "another device") lost.\n"
    }.joined()
  }

  private func row(_ conflict: SyncConflict) -> JSONRow {
    [
      "spot": conflict.recordID, "lost": conflict.lost, "duplicate_of": conflict.duplicateOf, "local": conflict.isLocal,
      "date": conflict.date.formatted(.iso8601),
    ]
  }
}
