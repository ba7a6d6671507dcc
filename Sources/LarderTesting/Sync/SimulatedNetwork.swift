internal import LarderSync
internal import Synchronization

/// The messages of all devices that are still on their way to the server.
///
/// They come in any order, and long after those who have sent them have given them up.
final class SimulatedPost: Sendable {
  private let server: SimulatedSyncServer
  private let late = Mutex<[(push: SyncPush, scope: String)]>([])
  /// Every push that the server was ever sent late, to be sent once more at the end.
  private let all = Mutex<[(push: SyncPush, scope: String)]>([])

  init(_ server: SimulatedSyncServer) { self.server = server }

  func delay(_ push: SyncPush, to scope: String) {
    late.withLock { $0.append((push, scope)) }
    all.withLock { $0.append((push, scope)) }
  }

  /// Delivers one of the messages.
  /// - Returns: Whether it has overtaken another one; `nil` where there was none.
  func deliver(using generator: inout SeededGenerator) -> Bool? {
    let count = late.withLock { $0.count }
    guard count > 0 else { return nil }
    let at = Int.random(in: 0..<count, using: &generator)
    let message = late.withLock { $0.remove(at: at) }
    _ = Result { () throws(SyncProblem) in try server.push(message.push, to: message.scope) }
    return at > 0
  }

  /// Delivers all that are still on their way.
  func deliverAll() {
    for message in late.withLock({ late in
      defer { late = [] }
      return late
    }) { _ = Result { () throws(SyncProblem) in try server.push(message.push, to: message.scope) } }
  }

  /// Delivers everything that was ever late once more.
  func repeatAll() {
    for message in all.withLock({ $0 }) { _ = Result { () throws(SyncProblem) in try server.push(message.push, to: message.scope) } }
  }
}

/// The way of one device to a simulated server: it loses, delays and repeats requests, loses answers, and is cut off.
///
/// A server that dies before its commit is a lost request, and one that dies after it a lost answer.
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
  /// The most records of a push that the server takes.
  private let pushLimit: Int
  /// Runs while a request is at the server and its answer on the way.
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

  /// Returns what was sent since the last call.
  func takeTraffic() -> SimulatedTraffic {
    state.withLock { state in
      defer { state.traffic = SimulatedTraffic() }
      return state.traffic
    }
  }

  /// Returns whether something happens that does so once in so many times; never on a perfect network.
  private func happens(_ event: SyncSimulation.Event, onceIn count: Int) -> Bool {
    state.withLock { state in
      guard !state.isPerfect, Int.random(in: 0..<count, using: &state.generator) == 0 else { return false }
      state.counts[event, default: 0] += 1
      return true
    }
  }

  private func count(_ event: SyncSimulation.Event) { state.withLock { $0.counts[event, default: 0] += 1 } }

  /// - Throws: `.unreachable` while the device is cut off, `.forbidden` while it may not use the scopes.
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
    if push.groups.joined().count > pushLimit {
      count(.division)
      throw SyncProblem.tooLarge
    }
    // What is sent is what is written and read again.
    let sent = try SyncPush(json: push.json)
    if happens(.lostRequest, onceIn: 10) { throw SyncProblem.unreachable("lost") }
    if happens(.delayedRequest, onceIn: 12) {
      post.delay(sent, to: scope)
      throw SyncProblem.unreachable("late")
    }
    let result = Result { () throws(SyncProblem) in try server.push(sent, to: scope) }
    if happens(.duplicate, onceIn: 6) { _ = Result { () throws(SyncProblem) in try server.push(sent, to: scope) } }
    if happens(.lateDuplicate, onceIn: 8) { post.delay(sent, to: scope) }
    if !state.withLock({ $0.isPerfect }) { await meanwhile() }
    if happens(.lostAnswer, onceIn: 5) { throw SyncProblem.unreachable("lost") }
    return try SyncPushReply(json: result.get().json)
  }

  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    try begin()
    if happens(.lostRequest, onceIn: 10) { throw SyncProblem.unreachable("lost") }
    let result = Result { () throws(SyncProblem) in try server.changes(request, in: scope) }
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

  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> { throw SyncProblem.unreachable("no events") }
}

/// The messages that a device has sent and taken.
struct SimulatedTraffic: Sendable, Equatable {
  var pushes = 0
  var pages = 0
  var records = 0
}
