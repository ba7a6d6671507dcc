internal import LarderSync
internal import Synchronization

/// The way of one device to a simulated server: it loses requests and answers, repeats requests at once and later, and is cut off.
final class SimulatedNetwork: SyncTransport {
  private struct State: Sendable {
    var generator: SeededGenerator
    var isPerfect = false
    var isCutOff = false
    /// Pushes that are on their way once more.
    var late: [(SyncPush, String)] = []
    var counts: [SyncSimulation.Event: Int] = [:]
  }

  private let server: SimulatedSyncServer
  private let state: Mutex<State>
  /// Runs while a push is at the server and its answer on the way.
  let meanwhile: @Sendable () async -> Void

  init(_ server: SimulatedSyncServer, seed: UInt64, meanwhile: @escaping @Sendable () async -> Void) {
    self.server = server
    self.meanwhile = meanwhile
    state = Mutex(State(generator: SeededGenerator(seed: seed)))
  }

  var counts: [SyncSimulation.Event: Int] { state.withLock { $0.counts } }
  func setPerfect(_ isPerfect: Bool) { state.withLock { $0.isPerfect = isPerfect } }
  func setCutOff(_ isCutOff: Bool) { state.withLock { $0.isCutOff = isCutOff } }

  /// Returns whether something happens that does so once in so many times; never on a perfect network.
  private func happens(_ event: SyncSimulation.Event, onceIn count: Int) -> Bool {
    state.withLock { state in
      guard !state.isPerfect, Int.random(in: 0..<count, using: &state.generator) == 0 else { return false }
      state.counts[event, default: 0] += 1
      return true
    }
  }

  /// - Throws: `.unreachable` while the device is cut off.
  private func checkReachable() throws(SyncProblem) {
    let isCutOff = state.withLock { state in
      if state.isCutOff { state.counts[.partition, default: 0] += 1 }
      return state.isCutOff
    }
    if isCutOff { throw .unreachable("cut off") }
  }

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    try checkReachable()
    if happens(.lostRequest, onceIn: 8) { throw SyncProblem.unreachable("lost") }
    // What is sent is what is written and read again.
    let sent = try SyncPush(json: push.json)
    let result = Result { () throws(SyncProblem) in try server.push(sent, to: scope) }
    if happens(.duplicate, onceIn: 6) { _ = Result { () throws(SyncProblem) in try server.push(sent, to: scope) } }
    if happens(.lateDuplicate, onceIn: 8) { state.withLock { $0.late.append((sent, scope)) } }
    if happens(.editInFlight, onceIn: 4) { await meanwhile() }
    if happens(.lostAnswer, onceIn: 5) { throw SyncProblem.unreachable("lost") }
    return try SyncPushReply(json: result.get().json)
  }

  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    try checkReachable()
    for (push, scope) in state.withLock({ state in
      defer { state.late = [] }
      return state.late
    }) { _ = Result { () throws(SyncProblem) in try server.push(push, to: scope) } }
    if happens(.lostRequest, onceIn: 10) { throw SyncProblem.unreachable("lost") }
    do {
      let page = try server.changes(request, in: scope)
      if happens(.lostPage, onceIn: 8) { throw SyncProblem.unreachable("lost") }
      if page.more { state.withLock { $0.counts[.severalPages, default: 0] += 1 } }
      return try SyncChanges(json: page.json)
    } catch SyncProblem.resync(let horizon) {
      state.withLock { $0.counts[.resync, default: 0] += 1 }
      throw SyncProblem.resync(horizon: horizon)
    } catch SyncProblem.history(let history) {
      state.withLock { $0.counts[.newHistory, default: 0] += 1 }
      throw SyncProblem.history(history)
    }
  }

  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> { throw SyncProblem.unreachable("no events") }
}
