internal import Foundation
internal import Larder
internal import LarderSync
internal import Synchronization

/// One history of a ``SyncSimulation`` while it runs.
final class SyncHistory {
  private let seed: UInt64
  private var generator: SeededGenerator
  private let server: SimulatedSyncServer
  private let time: ManualClock
  private var devices: [SimulatedDevice] = []
  private var report: SyncSimulation.Report
  private var counted = SimulatedCounts()
  private var kept: Set<String> = []
  private var doomed: Set<String> = []
  private var number = 0
  private var backup: SimulatedSyncServer.Backup?
  private var hasRestored = false
  private var hasCopied = false

  init(seed: UInt64) {
    self.seed = seed
    generator = SeededGenerator(seed: seed)
    let time = ManualClock()
    self.time = time
    server = SimulatedSyncServer { Int(time.now.timeIntervalSince1970 * 1_000) }
    report = SyncSimulation.Report(seed: seed)
  }

  private func random(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }
  private func note(_ event: SyncSimulation.Event) { report.events[event, default: 0] += 1 }

  func run() async throws -> SyncSimulation.Report {
    for _ in 0..<(2 + random(3)) { devices.append(try await newDevice()) }
    let steps = 30 + random(50)
    for _ in 0..<steps { try await step() }
    try await settle()
    for device in devices {
      for (event, count) in device.network.counts { report.events[event, default: 0] += count }
      report.events[.conflict, default: 0] += device.engine.conflicts.snapshot.count
      try await device.store.close()
    }
    return report
  }

  private func newDevice(of original: SimulatedDevice? = nil) async throws -> SimulatedDevice {
    let clock = ManualClock(now: time.now.addingTimeInterval(Double(random(200_000_000) - 100_000_000)))
    let repository = SimulatedEdits(counted)
    let network = SimulatedNetwork(server, seed: generator.next()) { await repository.increment() }
    let device: SimulatedDevice
    if let original {
      device = try await original.copy(clock: clock, network: network)
    } else {
      device = try await SimulatedDevice(clock: clock, network: network, pageSize: 1 + random(6))
    }
    repository.use(device.records)
    device.edits = repository
    return device
  }

  // MARK: Steps

  private func step() async throws {
    for device in devices { device.clock.setWall(to: device.clock.now.addingTimeInterval(1)) }
    time.setWall(to: time.now.addingTimeInterval(1))
    let device = devices[random(devices.count)]
    switch random(100) {
    case 0..<10: try await insert(device)
    case 10..<30: try await edit(device)
    case 30..<42: await device.edits?.increment()
    case 42..<50: try await delete(device)
    case 50..<54: try await transact(device)
    case 54..<58: device.network.setCutOff(random(2) == 0)
    case 58..<62:
      for scope in SimulatedDevice.scopes where server.purge(scope) > 0 { note(.purge) }
    case 62..<64 where seed % 4 == 3: restore()
    case 64..<66 where seed % 8 == 6 && devices.count < 6:
      devices.append(try await newDevice(of: device))
      hasCopied = true
      note(.copy)
    case 66..<74: try await exchangeAndCrash(device)
    default: try await exchange(device)
    }
  }

  private func insert(_ device: SimulatedDevice) async throws {
    number += 1
    let scope = SimulatedDevice.scopes[random(3)]
    let isDoomed = random(3) == 0
    let id = "\(isDoomed ? "d" : "k")\(number)"
    try await device.records.save(SimulatedRecord(id: id, scope: scope, name: "new"))
    if !isDoomed { kept.insert(id) }
    note(.insert)
  }

  private func edit(_ device: SimulatedDevice) async throws {
    let found = device.records.snapshot.loadAll().filter { $0.id.hasPrefix("k") || $0.id.hasPrefix("e") }
    guard !found.isEmpty else {
      number += 1
      try await device.records.save(SimulatedRecord(id: "e\(random(4))", scope: SimulatedDevice.scopes[0], name: "edit"))
      return
    }
    let (name, tag) = ("name \(random(1_000))", "tag \(random(5))")
    let isTag = random(2) == 0
    try await device.records.update(found[random(found.count)].id) { record in
      if !isTag {
        record.name = name
      } else if let at = record.tags.firstIndex(of: tag) {
        record.tags.remove(at: at)
      } else {
        record.tags.append(tag)
      }
    }
    note(.edit)
  }

  private func delete(_ device: SimulatedDevice) async throws {
    let found = device.records.snapshot.loadAll().filter { $0.id.hasPrefix("d") || $0.id.hasPrefix("e") }
    guard !found.isEmpty else { return }
    let id = found[random(found.count)].id
    try await device.records.delete(id)
    if id.hasPrefix("d") { doomed.insert(id) }
    note(.deletion)
  }

  /// Edits two records at once, which must arrive together.
  private func transact(_ device: SimulatedDevice) async throws {
    let found = device.records.snapshot.loadAll().filter { $0.id.hasPrefix("k") }
    guard found.count > 1 else { return }
    let (first, second, records) = (found[random(found.count)].id, found[random(found.count)].id, device.records)
    let name = "both \(random(1_000))"
    try await device.store.transaction { transaction in
      for id in [first, second] { try transaction.update(id, in: records) { $0.name = name } }
    }
    note(.transaction)
  }

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

  private func exchange(_ device: SimulatedDevice) async throws {
    do { try await device.engine.exchange() } catch is SyncProblem {}
  }

  private func exchangeAndCrash(_ device: SimulatedDevice) async throws {
    let isBefore = random(2) == 0
    device.crash(atCommit: 1 + random(12), isBefore ? .before : .after)
    do { try await device.engine.exchange() } catch {}
    note(isBefore ? .crashBefore : .crashAfter)
    try await device.restart()
    device.edits?.use(device.records)
    await device.edits?.resolve()
  }

  // MARK: The end

  private func settle() async throws {
    for device in devices {
      device.network.setPerfect(true)
      device.network.setCutOff(false)
    }
    for _ in 0..<4 {
      for device in devices {
        do { try await device.engine.exchange() } catch { report.problems.append("an exchange of a quiet device has failed: \(error)") }
      }
    }
    for (number, device) in devices.enumerated() {
      let pending = try await device.engine.pending
      if pending > 0 { report.problems.append("device \(number) has \(pending) edits left") }
    }
    var all: [String: SimulatedRecord] = [:]
    for scope in SimulatedDevice.scopes {
      let records = try server.records(of: scope).map { try JSONDecoder().decode(SimulatedRecord.self, from: $0.value ?? Data()) }
      for record in records { all[record.id] = record }
      for (number, device) in devices.enumerated() where device.contents(of: scope) != records {
        let found = device.contents(of: scope)
        let ids = Set(found.map(\.id)).union(records.map(\.id)).filter { id in
          found.first { $0.id == id } != records.first { $0.id == id }
        }
        report.problems.append("device \(number) has other records in \(scope) than the server: \(ids.sorted().joined(separator: " "))")
      }
    }
    for id in kept.sorted() where all[id] == nil { report.problems.append("\(id) was inserted and is lost") }
    guard !hasRestored, !hasCopied else { return }
    for id in doomed.sorted() where all[id] != nil { report.problems.append("\(id) was deleted and is back") }
    for (id, count) in counted.all where all[id]?.count != count {
      report.problems.append("\(id) has counted \(all[id]?.count ?? 0) of \(count)")
    }
  }
}

/// The increments that were saved, by counter.
final class SimulatedCounts: Sendable {
  private let counts = Mutex<[String: Int]>([:])
  var all: [String: Int] { counts.withLock { $0 } }
  func add(_ id: String) { counts.withLock { $0[id, default: 0] += 1 } }
}

/// The edits that a device makes while its engine waits for the network.
actor SimulatedEdits {
  private nonisolated let repository = Mutex<LocalRepository<SimulatedRecord>?>(nil)
  private let counted: SimulatedCounts
  private var number = 0

  init(_ counted: SimulatedCounts) { self.counted = counted }

  nonisolated func use(_ records: LocalRepository<SimulatedRecord>) { repository.withLock { $0 = records } }

  /// Adds one to a counter that all devices share, and makes it where it is missing.
  func increment() async {
    guard let records = repository.withLock({ $0 }) else { return }
    number += 1
    let id = "c\(number % 3)"
    let before = Self.count(of: id, in: records)
    do {
      try await records.transaction { transaction in
        var record = try transaction.find(by: id, in: records) ?? SimulatedRecord(id: id, scope: SimulatedDevice.scopes[0])
        record.count += 1
        try transaction.save(record, in: records)
      }
      counted.add(id)
    } catch {
      // The process has died: whether in this commit, and behind it, is seen once it is up again.
      unknown = unknown ?? (id, before)
    }
  }

  /// Counts an increment in whose commit the process has died, if it is there.
  func resolve() {
    guard let (id, before) = unknown, let records = repository.withLock({ $0 }) else { return }
    unknown = nil
    if Self.count(of: id, in: records) == before + 1 { counted.add(id) }
  }

  private var unknown: (id: String, before: Int)?

  private static func count(of id: String, in records: LocalRepository<SimulatedRecord>) -> Int {
    records.snapshot.loadAll().first { $0.id == id }?.count ?? 0
  }
}
