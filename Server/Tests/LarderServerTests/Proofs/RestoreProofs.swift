import Foundation
import Larder
import LarderSync
import Testing

extension PostgresProofs {
  /// What devices give back after the database has forgotten commits: a copy of its files from before is put in their place.
  @Suite struct RestoreProofs {
    /// Returns whether all devices, and a new one, have all that any had.
    private func restore(changesHistory: Bool) async throws -> Bool {
      var isWhole = false
      try await PostgresCluster.run { cluster in
        let uri = try await cluster.freshDatabase()
        var devices: [ProofDevice] = []
        let notes = count(20, 500)
        try await ServerGroup.run(1, on: uri) { group in
          for years in [10.0, -10, 0] { devices.append(try await ProofDevice(group.processes[0].url, years: years)) }
          for number in 0..<notes { try await devices[number % 3].notes.save(ProofNote(id: "before-\(number)", text: "as it was")) }
          for device in devices + devices { try await device.sync.exchange() }
          try await cluster.copyData(to: "copy")
          // What the copy lacks: new notes, newer texts, and some that only one other device has taken.
          for number in 0..<notes {
            try await devices[number % 2].notes.save(ProofNote(id: "after-\(number)", text: "new"))
            try await devices[number % 2].notes.save(ProofNote(id: "before-\(number)", text: "newer"))
          }
          for device in devices.prefix(2) { try await device.sync.exchange() }
          try await devices[0].sync.exchange()
          // The third one was away all the time, with an edit of its own.
          try await devices[2].notes.save(ProofNote(id: "away", text: "kept"))
        }
        try await cluster.stop(.immediate)
        try await cluster.restoreData(from: "copy")
        try await cluster.start()
        if changesHistory { _ = try await ServerProcess.run(uri, ["restore"]) }
        try await ServerGroup.run(1, on: uri) { group in
          // The same devices with the store that they have, at the address of the new process.
          devices = try await devices.asyncMap { try await $0.moved(to: group.processes[0].url) }
          for device in devices + devices + devices { try await device.sync.exchange() }
          let new = try await ProofDevice(group.processes[0].url)
          try await new.sync.exchange()
          let expected =
            ((0..<notes).flatMap { [ProofNote(id: "before-\($0)", text: "newer"), ProofNote(id: "after-\($0)", text: "new")] }
            + [ProofNote(id: "away", text: "kept")]).sorted { $0.id < $1.id }
          isWhole = true
          for device in devices + [new] where try await device.all() != expected { isWhole = false }
          if changesHistory {
            report("forced-lossy restore: \(expected.count) notes on \(devices.count + 1) devices, all equal: \(isWhole)")
          }
        }
      }
      return isWhole
    }

    @Test func whatAnyDeviceHoldsComesBack() async throws { #expect(try await restore(changesHistory: true)) }

    /// Without another history devices believe that the server has what it had: the same check must see that.
    @Test func aRestoreUnderTheOldHistoryIsSeen() async throws { #expect(try await !restore(changesHistory: false)) }
  }
}

extension Array {
  /// Returns what becomes of each element, one after another.
  func asyncMap<Result>(_ transform: (Element) async throws -> Result) async rethrows -> [Result] {
    var found: [Result] = []
    for element in self { found.append(try await transform(element)) }
    return found
  }
}
