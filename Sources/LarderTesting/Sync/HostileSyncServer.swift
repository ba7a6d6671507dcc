internal import Foundation
internal import Larder
internal import LarderSync
internal import Synchronization

/// A server that lies: it keeps records as an honest one does, and changes its answers at random before it sends them.
///
/// The changes are those of somebody who knows the wire and the names of records that are none of the server's business: records, numbers
/// and names out of bounds, outcomes about records that were not sent, outcomes in pages, and problems in place of answers.
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

  /// - Parameters:
  ///   - choices: The source of everything that is random.
  ///   - targets: The records that the answers name, whether or not the device has asked about them.
  init(choices: any RandomNumberGenerator & Sendable, targets: [RecordAddress]) {
    state = Mutex(State(choices: choices))
    self.targets = targets
  }

  /// Everything that the device has sent, as JSON.
  var received: Data { state.withLock { $0.received } }

  /// Answers so many more requests: a server that always has one more page would keep an exchange going.
  func answer(_ count: Int) { state.withLock { $0.answersLeft = count } }

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    try begin(push.json)
    state.withLock { $0.newestPush = push }
    var reply = try honest.push(push, to: scope)
    let isLost = state.withLock { state in
      change(&reply, of: push, &state)
      return state.chance(20)
    }
    // A page tells the outcome then.
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

  /// Keeps what was sent, and fails in place of an answer at times.
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
    // An outcome of the push that is on its way, about other records than were sent.
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
    let (version, number) = (Int64(1) << 31, Int64(1) << 53)
    return Number(clamping: state.one(of: [0, 1, 2, 3, 5, 8, 40, 1_000, version - 1, version, number - 1, number, .max, -1, .min]))
  }

  private func text(_ state: inout State) -> String {
    state.one(of: [
      "", "\0", "a", "user/2", "larder.sync.scopes", "user/1", "\u{1B}[31m", String(repeating: "t", count: 2_000), "../notes", "{\n}",
    ])
  }

  private func value(_ state: inout State, id: String) -> Data? {
    let own = #"{"id":"\#(id)","scope":"user/1","text":"planted","count":7}"#
    let other = #"{"id":"\#(id)","scope":"user/2","text":"planted","count":7}"#
    return state.one(of: [
      nil, Data(own.utf8), Data(own.utf8), Data(other.utf8), Data("null".utf8), Data(), Data("{".utf8), Data("[\n]".utf8),
      Data(String(repeating: "[", count: 200).utf8), Data(#"{"r":1,"s":"user/1"}"#.utf8),
    ])
  }
}
