internal import Foundation
internal import Larder
@_spi(Simulation) internal import LarderSync
internal import LarderWire
internal import Synchronization

/// Test of a device that syncs with a ``HostileSyncServer`` and has records that the server must neither read nor change.
///
/// The hidden records are in a collection that is not synced, in a collection that no repository reads, and in a scope that the engine does
/// not have. No byte of the hidden records may be sent or changed, and the store must open again.
struct HostileSyncTrial {
  /// Record of the device, either synced or hidden from the server.
  struct Note: Codable, Identifiable, Sendable, Equatable {
    var id: String
    var scope = "user/1"
    var text = ""
    var count = 0
  }

  /// Error that describes a promise that the device has broken.
  struct Breach: Error, CustomStringConvertible {
    let description: String
  }

  /// Text of every hidden record, which must never be sent.
  private static let secret = "SECRET"
  private static let hidden = [
    "private": [Note(id: "diary", text: secret), Note(id: "a", text: secret)],
    "attic": [Note(id: "box", text: secret)],
    "notes": [Note(id: "theirs", scope: "user/2", text: secret), Note(id: "early", scope: "user/2", text: secret)],
  ]
  // A hostile answer may name each record in `targets`: hidden records, synced records, and records in the engine's own collections. If the
  // device did not check the records of an answer, the server could overwrite any of these records.
  private static let targets =
    hidden.flatMap { name, notes in notes.map { RecordAddress(collection: name, key: RecordKey($0.id)) } }
    + ["a", "b", "c"].map { RecordAddress(collection: "notes", key: RecordKey($0)) }
    + ["larder.sync.records", "larder.sync.scopes", "larder.sync.rejected"].map {
      RecordAddress(collection: $0, key: RecordKey("notes/theirs"))
    }

  private static var synced: RepositorySchema<Note> {
    RepositorySchema<Note>("notes").synced(in: { $0.scope }, merge: .fields(counters: [\.count]))
  }

  /// Runs a device against a hostile server.
  ///
  /// - Parameters:
  ///   - choices: The source of all random choices.
  ///   - rounds: The number of exchanges, each after some edits.
  ///   - backend: Makes a backend on the device's store, which is the same store in each call.
  /// - Throws: ``Breach``.
  static func run(
    choices: any RandomNumberGenerator & Sendable, rounds: Int, backend: () throws -> any StorageBackend
  ) async throws {
    var choices = choices
    try await prepare(backend())
    let server = HostileSyncServer(choices: choices, targets: targets.sorted())
    for round in 0..<rounds {
      // The store is opened anew in each round, because a record that the hostile server has sent may be harmless in memory and damage the
      // store on disk.
      let store = try await Store.open(backend())
      let notes = try await store.repository(synced)
      let diary = try await store.repository(RepositorySchema<Note>("private"))
      let engine = try await SyncEngine(store, transport: server, scopes: ["user/1"])
      for id in ["a", "b", "c"] where Bool.random(using: &choices) {
        if Int.random(in: 0..<4, using: &choices) == 0 {
          try await notes.delete(id)
        } else {
          // The edit may fail: if the hostile server has sent a record of another scope or with other JSON under this id, the store refuses
          // the edit.
          do throws(RepositoryError) { try await notes.save(Note(id: id, text: "round \(round)", count: round)) } catch {
            guard [.unsupported, .newerSchema].contains(error.code) else { throw error }
          }
        }
      }
      // The number of answers is bounded. Without a bound on its answers, the server could announce one more page in every answer, and the
      // exchange would not end.
      server.answer(40)
      // The engine must check an answer before it stores the records, so an error of the store is a breach. A `SyncProblem` is an expected
      // error.
      do { try await engine.exchange(scopesAtOnce: 1) } catch let error as RepositoryError {
        throw Breach(description: "round \(round): the exchange fails in the store: \(error)")
      } catch is SyncProblem {
      } catch is CancellationError {
      }
      guard try await diary.loadAll() == hidden["private"]?.sorted(by: { $0.id < $1.id }) else {
        throw Breach(description: "round \(round): a collection that is not synced has changed")
      }
      // The check searches the raw bytes of all requests, so that a secret in any member of any message is found.
      guard server.received.range(of: Data(secret.utf8)) == nil else {
        throw Breach(description: "round \(round): a record that is not of the scope was sent")
      }
      try await store.close()
    }
    try await judge(backend())
  }

  /// Makes the store with the records that the server must not read, some of them saved before their collection was synced.
  private static func prepare(_ backend: any StorageBackend) async throws {
    let store = try await Store.open(backend)
    for (name, notes) in hidden {
      let early = notes.filter { $0.id != "theirs" }
      try await store.repository(RepositorySchema<Note>(name)).save(contentsOf: early)
    }
    try await store.close()
    // The note "theirs" is saved through the synced schema, so that it is an edit to be sent, in a scope that the engine does not have.
    let again = try await Store.open(backend)
    try await again.repository(synced).save(Note(id: "theirs", scope: "user/2", text: secret))
    try await again.close()
  }

  /// Requires that the reopened store is sound and that every hidden record is unchanged.
  private static func judge(_ backend: any StorageBackend) async throws {
    let store = try await Store.open(backend)
    // No round opens a repository of "attic", so this check reads its records as the rounds have left them in the store.
    for (name, notes) in hidden {
      let repository = try await store.repository(name == "notes" ? synced : RepositorySchema<Note>(name))
      for note in notes {
        guard try await repository.find(by: note.id) == note else { throw Breach(description: "\(name)/\(note.id) has changed or is gone") }
      }
    }
    guard await store.verify().isSound else { throw Breach(description: "the store is not sound") }
    try await store.close()
  }
}

/// Hostile sync server, which stores records like an honest server, and changes its answers at random before it sends them.
///
/// The attacker is assumed to have the wire format and the names of the hidden records. Answers hold records that no device has sent,
/// numbers and names out of bounds, outcomes for records that were not sent, and false outcomes in pages. Some requests get a problem in
/// place of an answer.
final class HostileSyncServer: SyncTransport {
  private struct State: Sendable {
    var choices: any RandomNumberGenerator & Sendable
    var answersLeft = 0
    var received = Data()
    var newestPush: SyncPush?

    mutating func int(below bound: Int) -> Int { Int.random(in: 0..<bound, using: &choices) }
    mutating func chance(_ percent: Int) -> Bool { int(below: 100) < percent }
    mutating func one<Element>(of elements: [Element]) -> Element { elements[int(below: elements.count)] }
  }

  private let honest = SimulatedSyncServer()
  private let state: Mutex<State>
  private let targets: [RecordAddress]

  /// Makes a server without records.
  ///
  /// - Parameters:
  ///   - choices: The source of all random choices.
  ///   - targets: The records that the answers name, even if the device has not asked for them.
  init(choices: any RandomNumberGenerator & Sendable, targets: [RecordAddress]) {
    state = Mutex(State(choices: choices))
    self.targets = targets
  }

  /// All bytes that the device has sent.
  var received: Data { state.withLock { $0.received } }

  /// Sets the number of further requests that the server answers.
  func answer(_ count: Int) { state.withLock { $0.answersLeft = count } }

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    try begin(push.json)
    state.withLock { $0.newestPush = push }
    var reply = try honest.push(push, to: scope)
    let isLost = state.withLock { state in
      change(&reply, of: push, &state)
      return state.chance(20)
    }
    // The honest server has stored the push, so a later page holds its outcome although this answer is lost.
    if isLost { throw SyncProblem.unreachable("lost") }
    return reply
  }

  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    try begin(Data("\(request)".utf8))
    var page = try honest.changes(request, in: scope)
    state.withLock { change(&page, asked: request, &$0) }
    return page
  }

  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> { throw SyncProblem.unreachable("no events") }

  /// Stores the bytes of a request, and throws a problem in about one of twelve requests and when no answers are left.
  private func begin(_ sent: Data) throws(SyncProblem) {
    let problem: SyncProblem? = state.withLock { state in
      state.received += sent
      state.answersLeft -= 1
      if state.answersLeft < 0 { return .unreachable("no more answers") }
      guard state.chance(8) else { return nil }
      let number: Int = number(&state)
      return state.one(of: [
        .gap(last: number), .history("another history"), .resync(horizon: number), .tooLarge, .malformed("no"), .answerTooLarge,
        .refused(status: 422, detail: "\u{1B}[2J"), .upgradeRequired(minimum: number), .forbidden,
      ])
    }
    if let problem { throw problem }
  }

  // MARK: Lies

  private func change(_ reply: inout SyncPushReply, of push: SyncPush, _ state: inout State) {
    change(&reply.receipt, &state)
    if state.chance(5) { reply.now = number(&state) }
    if state.chance(5) { reply.history = text(&state) }
  }

  private func change(_ receipt: inout SyncReceipt, _ state: inout State) {
    for position in receipt.outcomes.indices where state.chance(50) {
      let records = (0...state.int(below: 3)).map { _ in record(&state) }
      var current: [SyncRecord] = []
      if case .conflict(let found) = receipt.outcomes[position] { current = found }
      receipt.outcomes[position] = state.one(of: [
        .conflict(records), .conflict(current + records), .accepted(number(&state)), .rejected(code: text(&state), detail: text(&state)),
      ])
    }
    if state.chance(5) { receipt.outcomes.append(.conflict([record(&state)])) }
    if state.chance(5) { receipt.seq = number(&state) }
    if state.chance(5) { receipt.token = text(&state) }
  }

  private func change(_ page: inout SyncChanges, asked request: SyncChangesRequest, _ state: inout State) {
    for position in page.changes.indices where state.chance(30) { page.changes[position] = record(&state, like: page.changes[position]) }
    while state.chance(50) { page.changes.append(record(&state)) }
    // The page gets false outcomes of the device's newest push, with records that the device did not send.
    if state.chance(40), let push = state.newestPush {
      var receipt = SyncReceipt(
        seq: push.seq, token: push.token, outcomes: push.groups.map { _ in .conflict([]) })
      change(&receipt, &state)
      page.last = receipt
    }
    if state.chance(20) { page.more = true }
    if state.chance(20) { page.until = state.chance(50) ? request.since + 1 : number(&state) }
    if state.chance(5) { page.since = number(&state) }
    if state.chance(5) { page.head = number(&state) }
    if state.chance(5) { page.horizon = number(&state) }
    if state.chance(5) { page.total = number(&state) }
    if state.chance(5) { page.history = text(&state) }
  }

  private func record(_ state: inout State, like base: SyncRecord? = nil) -> SyncRecord {
    let target = state.one(of: targets)
    var record = base ?? SyncRecord(collection: target.collection, id: target.key.text, revision: 1)
    if base == nil || state.chance(50) { record.revision = number(&state) }
    if state.chance(30) { record.version = number(&state) }
    if state.chance(20) { record.stamp = number(&state) }
    if state.chance(20) { record.writer = text(&state) }
    if state.chance(10) { record.id = text(&state) }
    if state.chance(10) { record.collection = text(&state) }
    if base == nil || state.chance(50) { record.value = value(&state, id: record.id) }
    return record
  }

  private func number<Number: FixedWidthInteger>(_ state: inout State) -> Number {
    // Some of the numbers lie around 2³¹, the bound of schema versions, and around 2⁵³, the bound of exact integers in JSON.
    let (version, number) = (Int64(1) << 31, Int64(1) << 53)
    return Number(clamping: state.one(of: [0, 1, 2, 3, 5, 8, 40, 1_000, version - 1, version, number - 1, number, .max, -1, .min]))
  }

  private func text(_ state: inout State) -> String {
    state.one(of: [
      "", "\0", "a", "user/2", "larder.sync.scopes", "user/1", "\u{1B}[31m", String(repeating: "t", count: 2_000), "../notes", "{\n}",
    ])
  }

  private func value(_ state: inout State, id: String) -> Data? {
    // Some values of false records are a note in the synced scope, a note in a foreign scope, and JSON that is no note. Other values are
    // damaged, nested deeper than the limit, or like a record that the engine itself stores.
    let own = #"{"id":"\#(id)","scope":"user/1","text":"planted","count":7}"#
    let other = #"{"id":"\#(id)","scope":"user/2","text":"planted","count":7}"#
    return state.one(of: [
      nil, Data(own.utf8), Data(own.utf8), Data(other.utf8), Data("null".utf8), Data(), Data("{".utf8), Data("[\n]".utf8),
      Data(String(repeating: "[", count: 200).utf8), Data(#"{"r":1,"s":"user/1"}"#.utf8),
    ])
  }
}
