internal import Foundation
internal import Larder
@_spi(Simulation) internal import LarderSync
@_spi(Wire) internal import LarderWire

/// State of one running history of a ``SyncSimulation``, which is a random sequence of edits, exchanges and failures.
actor SyncHistory {
  private var generator: SeededGenerator
  private let backend: @Sendable (_ device: Int) throws -> any StorageBackend
  let server: SimulatedSyncServer
  let post: SimulatedPost
  private let time: ManualClock
  var devices: [SimulatedDevice] = []
  var report: SyncSimulation.Report
  let counted = SimulatedCounts()
  /// Ids of the inserted records that no device ever deletes.
  var kept: Set<String> = []
  /// Ids of the records that a device has deleted.
  var doomed: Set<String> = []
  /// Values of the member that only the newest app has, by the id of the record to which they were written.
  var extras: [String: Set<String>] = [:]
  private var number = 0
  private var backup: SimulatedSyncServer.Backup?
  /// Positions in `devices` of the devices whose exchange is running.
  private var busy: Set<Int> = []
  private(set) var hasRestored = false
  private(set) var hasCopied = false
  /// True if the devices run different versions of the app.
  let isMixed: Bool
  private let (restores, copies, refuses): (Bool, Bool, Bool)
  /// Maximum number of records in a push.
  private let pushLimit: Int

  init(seed: UInt64, backend: @escaping @Sendable (_ device: Int) throws -> any StorageBackend) {
    self.backend = backend
    generator = SeededGenerator(seed: seed)
    let time = ManualClock()
    self.time = time
    // With a limit of 150 bytes of values, an answer about a few records in conflict leaves some of the records out.
    server = SimulatedSyncServer(conflictBytes: seed % 5 == 0 ? 150 : 1 << 20) { SyncMilliseconds(time.now.timeIntervalSince1970 * 1_000) }
    post = SimulatedPost(server)
    report = SyncSimulation.Report(seed: seed)
    // The remainders of the seed decide the kind of history, so that 16 consecutive seeds have every kind.
    (restores, copies, refuses) = (seed % 4 == 3, seed % 8 == 6, seed % 8 == 2)
    pushLimit = seed % 8 == 4 ? 3 : .max
    isMixed = seed % 4 == 1 || seed % 16 == 7 || seed % 16 == 14
  }

  private func random(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }
  func note(_ event: SyncSimulation.Event, _ count: Int = 1) { report.events[event, default: 0] += count }

  func run() async throws -> SyncSimulation.Report {
    for _ in 0..<(2 + random(3)) { try await addDevice() }
    let steps = 30 + random(50)
    for _ in 0..<steps { try await step() }
    try await end()
    for device in devices {
      for (event, count) in device.network.counts { note(event, count) }
      note(.conflict, device.engine.conflicts.snapshot.count)
      try await device.store.close()
    }
    note(.increment, counted.all.values.reduce(0, +))
    note(.leftOut, server.leftOut)
    if SimulatedDevice.scopes.allSatisfy({ !server.records(of: $0).isEmpty }) { note(.threeScopes) }
    return report
  }

  private func addDevice(copyOf original: SimulatedDevice? = nil) async throws {
    // The clock of a device is wrong by up to about three years.
    let clock = ManualClock(now: time.now.addingTimeInterval(Double(random(200_000_000) - 100_000_000)))
    let position = devices.count
    // The simulated history owns the device, and the device owns its network. The network's reference to the history is weak, because a
    // strong reference would keep the history, the device and the network in memory.
    let network = SimulatedNetwork(server, post, seed: generator.next(), pushLimit: pushLimit) { [weak self] in
      await self?.meanwhile(position)
    }
    if let original {
      devices.append(
        try await original.copy(to: try backend(position), clock: clock, network: network, edits: SimulatedEdits(counted)))
    } else {
      let app = isMixed ? [SimulatedApp.v2, .v2, .v3, .withExtra][random(4)] : .v2
      devices.append(
        try await SimulatedDevice(
          try backend(position), clock: clock, network: network, edits: SimulatedEdits(counted), pageSize: 1 + random(6), app: app))
    }
  }

  // MARK: Steps

  private func step() async throws {
    for device in devices { device.clock.setWall(to: device.clock.now.addingTimeInterval(1)) }
    time.setWall(to: time.now.addingTimeInterval(1))
    let position = random(devices.count)
    let device = devices[position]
    switch random(100) {
    case 0..<10: try await insert(device)
    case 10..<30: try await edit(device)
    case 30..<42: await device.edits.increment(device.records)
    case 42..<50: try await delete(device)
    case 50..<54: try await transact(device)
    case 54..<58: device.network.setCutOff(random(2) == 0)
    case 58..<61: purge()
    case 61: try await happenRarely(device)
    case 62..<64 where restores: restore()
    case 64..<66 where copies && devices.count < 6:
      try await copy(position)
    case 62..<66 where isMixed: try await upgrade(device)
    case 66..<74: try await exchangeAndCrash(position)
    default: try await exchange(position)
    }
  }

  /// Copies the store of a device to a new device, and lets both devices send a push with the same number.
  private func copy(_ position: Int) async throws {
    try await addDevice(copyOf: devices[position])
    // Both devices push in every scope, because a device detects the copy of its store in each scope separately.
    for position in [position, devices.count - 1] {
      for scope in SimulatedDevice.scopes { try await insert(devices[position], scope) }
      try await exchange(position)
    }
    hasCopied = true
    note(.copy)
  }

  private func insert(_ device: SimulatedDevice, _ chosen: String? = nil) async throws {
    number += 1
    let scope = chosen ?? SimulatedDevice.scopes[random(3)]
    let isDoomed = random(3) == 0
    // The first letter of the id decides whether devices may delete the record. At the end of the simulated history, every inserted record
    // whose id begins with "k" must exist.
    let id = "\(isDoomed ? "d" : "k")\(number)"
    // JSON has several ways to write the special characters in the name, so an app that decodes and encodes the record may change its
    // bytes.
    let fields = SimulatedFields(name: "new / \u{E9}\"\n", extra: extra(device, of: id))
    try await device.records.insert(id, in: scope, fields)
    if !isDoomed { kept.insert(id) }
    note(.insert)
  }

  /// Returns a new value for the member that only the newest app has, or `nil` for a device with another app.
  private func extra(_ device: SimulatedDevice, of id: String) -> SimulatedExtra? {
    guard device.app == .withExtra else { return nil }
    number += 1
    let zone = "Zone/\(number) \u{FC}"
    extras[id, default: []].insert(zone)
    return SimulatedExtra(zone: zone, ratio: Double(number) / 7, parts: ["a", "\u{1F9ED}"])
  }

  private func edit(_ device: SimulatedDevice) async throws {
    // Counters, whose ids begin with "c", are left out, because only increments may change them. Records that may be deleted, whose ids
    // begin with "d", are left out, because an edit wins over a deletion and would bring the record back.
    let found = device.records.ids.filter { $0.hasPrefix("k") || $0.hasPrefix("e") }
    guard !found.isEmpty else {
      number += 1
      let id = "e\(random(4))"
      return try await unlessNewer { try await device.records.insert(id, in: SimulatedDevice.scopes[0], SimulatedFields(name: "edit")) }
    }
    let id = found[random(found.count)]
    let (name, tag) = ("name \(random(1_000))", "tag \(random(5))")
    let isTag = random(2) == 0
    let extra = extra(device, of: id)
    if device.app == .v3, holdsExtra(device, id) { note(.unknownMember) }
    try await device.records.update(id) { fields in
      if let extra { fields.extra = extra }
      if !isTag {
        fields.name = name
      } else if let at = fields.tags.firstIndex(of: tag) {
        fields.tags.remove(at: at)
      } else {
        fields.tags.append(tag)
      }
    }
    note(.edit)
  }

  /// Runs an edit that the store may refuse to an older app, and counts the refusal.
  private func unlessNewer(_ body: () async throws -> Void) async throws {
    do { try await body() } catch let error as RepositoryError where error.code == .newerSchema { note(.newerRecord) }
  }

  private func delete(_ device: SimulatedDevice) async throws {
    // An app may delete a record that a newer app has written, although the older app cannot read the record.
    let newer = isMixed ? device.records.newer : []
    let found = (device.records.ids + newer).filter { $0.hasPrefix("d") || $0.hasPrefix("e") }
    guard !found.isEmpty else { return }
    let id = found[random(found.count)]
    try await device.records.delete(id)
    if newer.contains(id) { note(.newerDeletion) }
    if id.hasPrefix("d") { doomed.insert(id) }
    note(.deletion)
  }

  /// Edits two records in one transaction, which must reach the server as one transaction group.
  private func transact(_ device: SimulatedDevice) async throws {
    let found = device.records.ids.filter { $0.hasPrefix("k") }
    guard found.count > 1 else { return }
    let ids = [found[random(found.count)], found[random(found.count)]]
    let name = "both \(random(1_000))"
    try await device.records.transact(ids) { $0.name = name }
    note(.transaction)
  }

  private func purge() {
    for scope in SimulatedDevice.scopes where server.purge(scope) > 0 { note(.purge) }
  }

  /// Makes a backup of the server, or restores the backup that was made before.
  private func restore() {
    if let backup, random(2) == 0 {
      server.restore(backup)
      self.backup = nil
      hasRestored = true
      note(.restore)
    } else {
      backup = server.backup()
    }
  }

  private func upgrade(_ device: SimulatedDevice) async throws {
    let newer = SimulatedApp.allCases.filter { $0.rawValue > device.app.rawValue }
    guard !newer.isEmpty else { return }
    try await device.restart(as: newer[random(newer.count)])
    if random(2) == 0 { try await device.records.finishMigration() }
    note(.upgrade)
  }

  /// Makes one rare event: sets a clock, forbids or allows the scopes, changes the server's refusals, or signs a device out.
  private func happenRarely(_ device: SimulatedDevice) async throws {
    switch refuses ? 2 : random(4) {
    case 0:
      device.clock.setWall(by: Double((1 + random(10)) * (random(2) == 0 ? 1 : -1)) * 365 * 86_400)
      note(.clockJump)
    case 1: device.network.setForbidden(random(2) == 0)
    case 2 where refuses:
      let digit = "\(random(10))"
      let isRefusing = random(3) > 0
      server.refuse { isRefusing && $0.id.hasSuffix(digit) ? "forbidden" : nil }
    // In a history with restores no device signs out. A restored server gets its lost records back from the devices, and a device that
    // has signed out has no records.
    case 3 where !restores:
      do {
        try await device.engine.signOut()
        note(.signOut)
      } catch is SyncUnsentEdits {}
    default: break
    }
  }

  // MARK: Exchanges

  private func exchange(_ position: Int) async throws {
    // While this exchange waits for an answer, `meanwhile` must not start a second exchange of the same device.
    busy.insert(position)
    defer { busy.remove(position) }
    // The network loses messages and the server refuses some, so a `SyncProblem` is a normal event of a history.
    do { try await devices[position].engine.exchange(scopesAtOnce: 1) } catch is SyncProblem {}
  }

  private func exchangeAndCrash(_ position: Int) async throws {
    let device = devices[position]
    let isBefore = random(2) == 0
    // An exchange makes several commits, and the simulated process may die before or after each of them.
    device.crash(atCommit: 1 + random(12), isBefore ? .before : .after)
    busy.insert(position)
    // The exchange may fail by the planned fault or by the network, and either failure is an event of the simulated history.
    do { try await device.engine.exchange(scopesAtOnce: 1) } catch {}
    busy.remove(position)
    note(isBefore ? .crashBefore : .crashAfter)
    // The device restarts even if the exchange ended before the planned commit. Without the restart, the planned fault would strike in a
    // later step of the simulated history.
    try await device.restart()
    device.edits.resolve(device.records)
  }

  /// Runs events while a device waits for an answer: an edit of its user, or the exchange of another device.
  private func meanwhile(_ position: Int) async {
    if random(6) == 0 {
      await devices[position].edits.increment(devices[position].records)
      note(.editInFlight)
    }
    // At most two exchanges run at once. An exchange that `meanwhile` starts also calls `meanwhile`, and without a limit the nesting could
    // have no end.
    guard busy.count < 2, random(12) == 0 else { return }
    let others = devices.indices.filter { !busy.contains($0) }
    guard !others.isEmpty else { return }
    let other = others[random(others.count)]
    note(.interleaving)
    do {
      // The deletion and the purge of its tombstone may fall between two pages of a full pass that the waiting device makes.
      if random(2) == 0 { try await delete(devices[other]) }
      try await exchange(other)
      if random(3) == 0 { purge() }
    } catch {
      report.problems.append("an exchange between the messages of another has failed: \(error)")
    }
  }
}
