import Foundation
import Larder
import LarderSQLite
import LarderSync
import LarderTesting
import Synchronization
import Testing

extension PostgresProofs {
  /// Random histories of devices with stores in memory, JSON and SQLite, over a bad network to processes of the server.
  @Suite struct HistoryProofs {
    @Test func everyHistoryEndsWithEqualDevicesAndExactCounters() async throws {
      let (first, histories) = (PostgresProofs.seed("histories"), count(3, 300))
      let uri = try await PostgresCluster.shared().freshDatabase()
      try await ServerGroup.run(2, on: uri) { group in
        var events = HistoryEvents()
        for seed in first..<first + UInt64(histories) {
          let history = try await ProofHistory(seed: seed, group.transports)
          let problems = try await history.run()
          #expect(problems.isEmpty, "LARDER_SEED=\(seed) repeats its edits")
          events.merge(await history.events, uniquingKeysWith: +)
        }
        let counted = events.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        report("\(histories) histories from seed \(first): \(counted)")
      }
    }
  }
}

typealias HistoryEvents = [String: Int]

/// The network of a device to one of the servers: it loses, repeats and delays pushes, and loses answers.
private final class LossyTransport: SyncTransport {
  private struct State: Sendable {
    var random: SeededGenerator
    var isPerfect = false
    /// The pushes that come once more, long after they were sent.
    var late: [SyncPush] = []
    var events = HistoryEvents()
  }

  private let servers: [HTTPTransport]
  private let state: Mutex<State>

  init(_ servers: [HTTPTransport], seed: UInt64) {
    self.servers = servers
    state = Mutex(State(random: SeededGenerator(seed: seed)))
  }

  var events: HistoryEvents { state.withLock { $0.events } }
  func becomePerfect() { state.withLock { $0.isPerfect = true } }

  private func happens(_ event: String, onceIn count: Int) -> Bool {
    state.withLock { state in
      guard !state.isPerfect, Int.random(in: 0..<count, using: &state.random) == 0 else { return false }
      state.events[event, default: 0] += 1
      return true
    }
  }

  private var server: HTTPTransport { state.withLock { servers[Int.random(in: 0..<servers.count, using: &$0.random)] } }

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    if happens("lateDuplicate", onceIn: 8) { state.withLock { $0.late.append(push) } }
    if happens("lostRequest", onceIn: 8) { throw SyncProblem.unreachable("lost") }
    if happens("duplicate", onceIn: 8) {
      async let other = server.push(push, to: scope)
      let reply = try await server.push(push, to: scope)
      _ = try await other
      return reply
    }
    let reply = try await server.push(push, to: scope)
    if happens("lostAnswer", onceIn: 5) { throw SyncProblem.unreachable("lost") }
    return reply
  }

  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    if happens("lostPage", onceIn: 8) { throw SyncProblem.unreachable("lost") }
    return try await server.changes(request, in: scope)
  }

  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> { throw SyncProblem.unreachable("no events") }

  /// Delivers the late pushes, of which the server refuses those of a device that has pushed since.
  func deliverLate(to scope: String) async throws {
    let late = state.withLock { state in
      defer { state.late = [] }
      return state.late
    }
    for push in late { do { _ = try await server.push(push, to: scope) } catch is SyncProblem {} }
  }
}

/// A device of a history: its process dies, and starts again over what its store has made durable.
private struct HistoryDevice: Sendable {
  let backend: any StorageBackend
  let network: LossyTransport
  let faults: FaultInjectingBackend
  let store: Store
  let notes: LocalRepository<ProofNote>
  let sync: SyncEngine

  init(_ backend: any StorageBackend, _ network: LossyTransport, _ scope: String, _ clock: ManualClock) async throws {
    (self.backend, self.network) = (backend, network)
    faults = FaultInjectingBackend(backend)
    store = try await Store.open(faults)
    notes = try await store.repository(
      RepositorySchema<ProofNote>("notes").synced(in: scope, merge: .fields(counters: [\.count]), clock: clock))
    sync = try await SyncEngine(store, transport: network, scopes: [scope], clock: clock, pageSize: 7)
  }

  /// Exchanges over a network that loses things.
  func tryExchange() async throws { do { try await sync.exchange() } catch is SyncProblem {} }
}

/// A random history of three devices, and what must hold at its end.
private actor ProofHistory {
  private var random: SeededGenerator
  private let scope: String
  private let directory: TemporaryDirectory
  private let clocks: [ManualClock]
  private var devices: [HistoryDevice] = []
  /// The records that were inserted and are never deleted, those that were deleted, and how often each counter was counted up.
  private var (kept, deleted, counters): (Set<String>, Set<String>, [String: Int]) = ([], [], [:])
  private var number = 0
  private(set) var events = HistoryEvents()

  init(seed: UInt64, _ servers: [HTTPTransport]) async throws {
    (random, scope, directory) = (SeededGenerator(seed: seed), "user/\(seed)", try TemporaryDirectory())
    clocks = [10, -10, 0].map { ManualClock(now: Date(timeIntervalSince1970: 1_767_225_600 + $0 * 31_557_600)) }
    let backends: [any StorageBackend] = [
      InMemoryBackend(), JSONFileBackend(file: URL(fileURLWithPath: directory.file("notes.json"))),
      SQLiteBackend(file: URL(fileURLWithPath: directory.file("notes.sqlite"))),
    ]
    for (backend, clock) in zip(backends, clocks) {
      devices.append(try await HistoryDevice(backend, LossyTransport(servers, seed: random.next()), scope, clock))
    }
  }

  private func choose(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  /// - Returns: What does not hold at the end, in words.
  func run() async throws -> [String] {
    for _ in 0..<60 + choose(60) { try await step(choose(devices.count)) }
    for device in devices {
      device.network.becomePerfect()
      events.merge(device.network.events, uniquingKeysWith: +)
    }
    for round in 0..<4 {
      for device in devices {
        try await device.sync.exchange()
        if round == 0 { try await device.network.deliverLate(to: scope) }
      }
    }
    let problems = try await findProblems()
    for device in devices { try await device.store.close() }
    return problems
  }

  private func step(_ position: Int) async throws {
    let device = devices[position]
    clocks[position].setWall(to: clocks[position].now.addingTimeInterval(1))
    let event: String
    switch choose(100) {
    case 0..<12: event = try await insert(device)
    case 12..<30: event = try await edit(device)
    case 30..<45: event = try await increment(device)
    case 45..<53: event = try await delete(device)
    case 53..<60:
      event = "lateDelivery"
      try await device.network.deliverLate(to: scope)
    case 60..<72: event = try await exchangeAndCrash(position)
    case 72..<78:
      event = "suspension"
      try await device.tryExchange()
      await device.store.suspend()
      try await device.store.resume()
    default:
      event = "exchange"
      try await device.tryExchange()
    }
    events[event, default: 0] += 1
  }

  private func insert(_ device: HistoryDevice) async throws -> String {
    number += 1
    let id = "\(choose(3) == 0 ? "d" : "k")\(number)"
    if id.hasPrefix("k") { kept.insert(id) }
    try await device.notes.save(ProofNote(id: id, text: "new"))
    return "insert"
  }

  private func edit(_ device: HistoryDevice) async throws -> String {
    let ids = device.notes.snapshot.loadAll().map(\.id).filter { $0.hasPrefix("k") }.sorted()
    guard !ids.isEmpty else { return "nothing" }
    let text = "text \(choose(1_000))"
    try await device.notes.update(ids[choose(ids.count)]) { $0.text = text }
    return "edit"
  }

  private func increment(_ device: HistoryDevice) async throws -> String {
    let id = "counter-\(choose(2))"
    try await device.notes.transaction { [notes = device.notes] transaction in
      var note = try transaction.find(by: id, in: notes) ?? ProofNote(id: id)
      note.count += 1
      try transaction.save(note, in: notes)
    }
    counters[id, default: 0] += 1
    return "increment"
  }

  private func delete(_ device: HistoryDevice) async throws -> String {
    let ids = device.notes.snapshot.loadAll().map(\.id).filter { $0.hasPrefix("d") }.sorted()
    guard !ids.isEmpty else { return "nothing" }
    let id = ids[choose(ids.count)]
    try await device.notes.delete(id)
    deleted.insert(id)
    return "deletion"
  }

  /// Lets the process die before or after one of the commits of an exchange, and starts it again.
  private func exchangeAndCrash(_ position: Int) async throws -> String {
    let (device, isBefore) = (devices[position], choose(2) == 0)
    let death = RepositoryError(.outcomeUnknown, "the process dies here")
    device.faults.fail(.commit, call: 1 + choose(8), with: death, isBefore ? .before : .after)
    do { try await device.sync.exchange() } catch {}
    device.backend.abandon()
    devices[position] = try await HistoryDevice(device.backend, device.network, scope, clocks[position])
    return isBefore ? "crashBefore" : "crashAfter"
  }

  private func findProblems() async throws -> [String] {
    var problems: [String] = []
    let notes = devices.map { $0.notes.snapshot.loadAll().sorted { $0.id < $1.id } }
    for (position, found) in notes.enumerated() where found != notes[0] { problems.append("device \(position) differs from device 0") }
    for (position, device) in devices.enumerated() {
      let pending = try await device.sync.pending
      if pending > 0 { problems.append("device \(position) has \(pending) edits left") }
      let rejected = device.sync.rejected.snapshot.count
      if rejected > 0 { problems.append("device \(position) has \(rejected) rejections") }
    }
    let found = Dictionary(uniqueKeysWithValues: notes[0].map { ($0.id, $0) })
    for id in kept.sorted() where found[id] == nil { problems.append("\(id) was inserted and is lost") }
    for id in deleted.sorted() where found[id] != nil { problems.append("\(id) was deleted and is back") }
    for (id, count) in counters.sorted(by: { $0.key < $1.key }) where found[id]?.count != count {
      problems.append("\(id) has counted \(found[id]?.count ?? 0) of \(count)")
    }
    return problems
  }
}
