internal import LarderSync
internal import LarderWire
internal import Synchronization

/// Queue of the delayed pushes of all devices, which reach the server in any order.
///
/// A push may arrive long after its device has received an error for it.
final class SimulatedPost: Sendable {
  private let server: SimulatedSyncServer
  private let late = Mutex<[(push: SyncPush, scope: String)]>([])
  /// Every push that was ever delayed, for ``repeatAll()`` at the end of the simulated history.
  private let all = Mutex<[(push: SyncPush, scope: String)]>([])

  init(_ server: SimulatedSyncServer) { self.server = server }

  func delay(_ push: SyncPush, to scope: String) {
    late.withLock { $0.append((push, scope)) }
    all.withLock { $0.append((push, scope)) }
  }

  /// Delivers one random delayed push.
  ///
  /// - Returns: True if the push has overtaken an earlier delayed push, or `nil` if no push was delayed.
  func deliver(using generator: inout SeededGenerator) -> Bool? {
    let count = late.withLock { $0.count }
    guard count > 0 else { return nil }
    let at = Int.random(in: 0..<count, using: &generator)
    let message = late.withLock { $0.remove(at: at) }
    // No device waits for the answer to a delayed push, so the answer is dropped, even if it is a refusal.
    _ = Result { () throws(SyncProblem) in try server.push(message.push, to: message.scope) }
    return at > 0
  }

  /// Delivers all delayed pushes, in the order in which they were sent.
  func deliverAll() {
    for message in late.withLock({ late in
      defer { late = [] }
      return late
    }) { _ = Result { () throws(SyncProblem) in try server.push(message.push, to: message.scope) } }
  }

  /// Delivers every push again that was ever delayed.
  func repeatAll() {
    for message in all.withLock({ $0 }) { _ = Result { () throws(SyncProblem) in try server.push(message.push, to: message.scope) } }
  }
}

/// Network between one device and the simulated server, which loses, delays and repeats requests, loses answers, and can be cut off.
///
/// For the device, a lost request looks like a server that dies before its commit, and a lost answer looks like a server that dies after
/// its commit.
final class SimulatedNetwork: SyncTransport {
  private struct State: Sendable {
    var generator: SeededGenerator
    var isPerfect = false
    var isCutOff = false
    var isForbidden = false
    var traffic = SimulatedTraffic()
    var counts: [SyncSimulation.Event: Int] = [:]
  }

  private let server: SimulatedSyncServer
  private let post: SimulatedPost
  private let state: Mutex<State>
  /// Maximum number of records of a push.
  ///
  /// The network refuses a larger push with `.tooLarge`.
  private let pushLimit: Int
  /// Closure that runs between a request and its answer, so that edits and exchanges of other devices can come in between.
  private let meanwhile: @Sendable () async -> Void

  init(
    _ server: SimulatedSyncServer, _ post: SimulatedPost, seed: UInt64, pushLimit: Int, meanwhile: @escaping @Sendable () async -> Void
  ) {
    (self.server, self.post, self.pushLimit, self.meanwhile) = (server, post, pushLimit, meanwhile)
    state = Mutex(State(generator: SeededGenerator(seed: seed)))
  }

  var counts: [SyncSimulation.Event: Int] { state.withLock { $0.counts } }
  func setPerfect(_ isPerfect: Bool) { state.withLock { $0.isPerfect = isPerfect } }
  func setForbidden(_ isForbidden: Bool) { state.withLock { $0.isForbidden = isForbidden } }
  func setCutOff(_ isCutOff: Bool) { state.withLock { $0.isCutOff = isCutOff } }

  /// Returns the counts of messages since the last call, and sets the counts to zero.
  func takeTraffic() -> SimulatedTraffic {
    state.withLock { state in
      defer { state.traffic = SimulatedTraffic() }
      return state.traffic
    }
  }

  /// Returns true with probability 1/count and counts the event, or returns false on a perfect network.
  private func happens(_ event: SyncSimulation.Event, onceIn count: Int) -> Bool {
    state.withLock { state in
      guard !state.isPerfect, Int.random(in: 0..<count, using: &state.generator) == 0 else { return false }
      state.counts[event, default: 0] += 1
      return true
    }
  }

  private func count(_ event: SyncSimulation.Event) { state.withLock { $0.counts[event, default: 0] += 1 } }

  /// Starts a request, and delivers a delayed push first in one of four requests on average.
  ///
  /// - Throws: `.unreachable` while the device is cut off, `.forbidden` while the device may not use the scopes.
  private func begin() throws(SyncProblem) {
    let (isCutOff, isForbidden) = state.withLock { state in
      if state.isCutOff { state.counts[.partition, default: 0] += 1 }
      if state.isForbidden { state.counts[.revoked, default: 0] += 1 }
      if !state.isPerfect, Int.random(in: 0..<4, using: &state.generator) == 0, post.deliver(using: &state.generator) == true {
        state.counts[.reordered, default: 0] += 1
      }
      return (state.isCutOff, state.isForbidden)
    }
    if isCutOff { throw .unreachable("cut off") }
    if isForbidden { throw .forbidden }
  }

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    try begin()
    state.withLock { $0.traffic.pushes += 1 }
    // The size of a push is checked before the request can be lost, so that a push over the limit is refused every time.
    if push.groups.joined().count > pushLimit {
      count(.division)
      throw SyncProblem.tooLarge
    }
    // The push is encoded and decoded, so that a mistake of the wire format changes the simulated history.
    let sent = try SyncPush(json: push.json)
    if happens(.lostRequest, onceIn: 10) { throw SyncProblem.unreachable("lost") }
    // The device gets the same error as for a lost request, although the push arrives at the server later.
    if happens(.delayedRequest, onceIn: 12) {
      post.delay(sent, to: scope)
      throw SyncProblem.unreachable("late")
    }
    // The answer is stored as a `Result` and thrown later, because the network can lose a refusal like any other answer.
    let result = Result { () throws(SyncProblem) in try server.push(sent, to: scope) }
    // The answer to the repeated request is dropped, because a network that repeats a request returns one answer.
    if happens(.duplicate, onceIn: 6) { _ = Result { () throws(SyncProblem) in try server.push(sent, to: scope) } }
    if happens(.lateDuplicate, onceIn: 8) { post.delay(sent, to: scope) }
    // Other events run after the server's commit and before the device has the answer, while the device's data is older.
    if !state.withLock({ $0.isPerfect }) { await meanwhile() }
    if happens(.lostAnswer, onceIn: 5) { throw SyncProblem.unreachable("lost") }
    return try SyncPushReply(json: result.get().json)
  }

  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    try begin()
    if happens(.lostRequest, onceIn: 10) { throw SyncProblem.unreachable("lost") }
    let result = Result { () throws(SyncProblem) in try server.changes(request, in: scope) }
    // The server has read the page already, so the page may be older than the newest commits when the device receives it.
    if !state.withLock({ $0.isPerfect }) { await meanwhile() }
    switch result {
    case .success(let page):
      if happens(.lostPage, onceIn: 8) { throw SyncProblem.unreachable("lost") }
      state.withLock { state in
        if page.more { state.counts[.severalPages, default: 0] += 1 }
        state.traffic.pages += 1
        state.traffic.records += page.changes.count
      }
      return try SyncChanges(json: page.json)
    case .failure(let problem):
      if case .resync = problem { count(.resync) }
      if case .history = problem { count(.newHistory) }
      throw problem
    }
  }

  // The simulated network delivers no events of the server. The simulated history starts every exchange itself, at a step that the seed
  // decides.
  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> { throw SyncProblem.unreachable("no events") }
}

/// Counts of the messages that a device has sent and received.
struct SimulatedTraffic: Sendable, Equatable {
  var pushes = 0
  var pages = 0
  var records = 0
}
