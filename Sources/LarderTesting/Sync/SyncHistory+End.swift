internal import Foundation
internal import Larder
@_spi(Simulation) internal import LarderSync

/// End of a simulated history: exchanges without new edits, and the checks of the invariants.
extension SyncHistory {
  /// Number of exchanges of each device after which all devices must have converged.
  private static var roundLimit: Int { 4 }

  /// Lets the devices converge, and reports every invariant that does not hold.
  func end() async throws {
    for device in devices {
      device.network.setPerfect(true)
      device.network.setCutOff(false)
      device.network.setForbidden(false)
    }
    server.refuse { _ in nil }
    if isMixed {
      // The devices converge first with their old apps, which must store and preserve records of the newest app.
      try await converge("with apps of several versions")
      for device in devices where device.app != .withExtra {
        try await device.restart(as: .withExtra)
        note(.upgrade)
      }
    }
    try await converge(isMixed ? "with the newest app everywhere" : "")
    for (number, device) in devices.enumerated() {
      let pending = try await device.engine.pending
      if pending > 0 { report.problems.append("device \(number) has \(pending) edits left") }
    }
    let all = try contents()
    for id in kept.sorted() where all[id] == nil { report.problems.append("\(id) was inserted and is lost") }
    for (id, zones) in extras.sorted(by: { $0.key < $1.key }) {
      // A record that was deleted and inserted again has another value, so only records that no device deletes are checked. After a restore
      // of the server, a later edit of another device may win, so the member `extra` is not checked.
      guard kept.contains(id), !hasRestored, let fields = all[id] else { continue }
      if !zones.contains(fields.extra?.zone ?? "") { report.problems.append("\(id) has lost what older apps do not know") }
    }
    // A restored server may have lost a deletion or an increment, and a copied store may send an increment twice. The checks of deletions
    // and counters would report such a loss or repetition as a broken invariant.
    guard !hasRestored, !hasCopied else { return }
    for id in doomed.sorted() where all[id] != nil { report.problems.append("\(id) was deleted and is back") }
    for (id, count) in counted.all.sorted(by: { $0.key < $1.key }) where all[id]?.count != count {
      report.problems.append("\(id) has counted \(all[id]?.count ?? 0) of \(count)")
    }
  }

  /// Retries the edits that the server has refused with the code `forbidden`.
  ///
  /// The outcome of a push may arrive late: the server stores the outcome, and a device that has received no answer sends the same push
  /// again.
  private func retryRefused(_ device: SimulatedDevice) async throws {
    for rejection in device.engine.rejected.snapshot.loadAll().filter({ $0.code == "forbidden" }).sorted(by: { $0.id < $1.id }) {
      note(.rejected)
      try await device.engine.retry(rejection)
    }
  }

  /// Lets all devices sync for a fixed number of rounds, and compares them with the server.
  private func converge(_ when: String) async throws {
    for round in 1...Self.roundLimit {
      for (number, device) in devices.enumerated() {
        if round <= 2 { try await retryRefused(device) }
        _ = device.network.takeTraffic()
        do { try await device.engine.exchange(scopesAtOnce: 1) } catch {
          complain("an exchange of the quiet device \(number) has failed: \(error)", when)
        }
        let traffic = device.network.takeTraffic()
        // A device that has nothing more to sync sends no push, and receives one empty page for each scope.
        let isQuiet = traffic == SimulatedTraffic(pushes: 0, pages: SimulatedDevice.scopes.count, records: 0)
        if round == Self.roundLimit, !isQuiet { complain("device \(number) is not quiet: \(traffic)", when) }
      }
      // The delayed pushes arrive after the first round, when every device has sent its own edits. After the delayed pushes, the devices
      // must still converge in the remaining rounds.
      if round == 1 { post.deliverAll() }
    }
    for (number, device) in devices.enumerated() { try await compare(device, number: number, when: when) }
    // The delayed pushes are repeated after the comparison, so that a repeated push cannot repair a difference.
    let before = SimulatedDevice.scopes.map(server.records)
    post.repeatAll()
    if SimulatedDevice.scopes.map(server.records) != before { complain("a repeated message has changed the server", when) }
  }

  private func complain(_ problem: String, _ when: String) { report.problems.append(when.isEmpty ? problem : "\(when): \(problem)") }

  /// Compares the stored records of a device with those of the server.
  private func compare(_ device: SimulatedDevice, number: Int, when: String) async throws {
    var known: Set<String> = []
    // If a newer app has changed a record meanwhile, this device's edit of it waits until the device has an app that can merge it.
    let waiting = Set(device.engine.rejected.snapshot.loadAll().filter { $0.code == "newerSchema" }.map(\.recordID))
    let newer = Set(isMixed ? device.records.newer : [])
    for record in SimulatedDevice.scopes.flatMap(server.records) {
      known.insert(record.id)
      let theirs = StoredValue(schemaVersion: record.version, json: record.value ?? Data())
      let found = try device.stored(record.id)
      let isNewer = record.version > device.app.version
      if isNewer, waiting.contains(record.id) {
        note(.waitingEdit)
        continue
      }
      if isNewer { note(.newerRecord) }
      if isNewer, !newer.contains(record.id) { complain("device \(number) reads \(record.id), which a newer app has written", when) }
      if found == theirs { continue }
      // A device with a newer app may have migrated the record in its store without an edit, so the server still has the old version.
      if record.version < device.app.version, try found == broughtUp(theirs) {
        note(.olderRecord)
        continue
      }
      complain("device \(number) has not what the server has of \(record.id)", when)
    }
    for id in device.records.ids + newer where !known.contains(id) && !waiting.contains(id) {
      complain("device \(number) has \(id), and the server has not", when)
    }
  }

  /// Returns a record of schema version 2 as the simulated app migrates it to version 3.
  private func broughtUp(_ value: StoredValue) throws -> StoredValue {
    guard var object = try JSONValue(json: value.json).objectValue else { return value }
    SimulatedItemV3.bringUp(&object)
    return StoredValue(schemaVersion: 3, json: JSONValue.object(object).json)
  }

  /// Returns the contents of the server's records by their ids, of all schema versions.
  private func contents() throws -> [String: SimulatedFields] {
    var contents: [String: SimulatedFields] = [:]
    let decoder = JSONDecoder()
    for record in SimulatedDevice.scopes.flatMap(server.records) {
      let value = record.value ?? Data()
      if record.version == 2 {
        contents[record.id] = try decoder.decode(SimulatedItemV2.self, from: value).fields
      } else {
        contents[record.id] = try decoder.decode(SimulatedItemWithExtra.self, from: value).fields
      }
    }
    return contents
  }

  /// Returns true if a device stores a record with the member that only the newest app has.
  func holdsExtra(_ device: SimulatedDevice, _ id: String) -> Bool {
    do throws(RepositoryError) {
      guard isMixed, let stored = try device.stored(id) else { return false }
      return try JSONValue(json: stored.json)["extra"] != nil
    } catch {
      return false
    }
  }
}
