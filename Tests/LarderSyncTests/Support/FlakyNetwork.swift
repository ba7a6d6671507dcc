import LarderSync
import LarderTesting
import Synchronization
import TestSupport

/// The ways of several devices to a simulated server: requests and answers are lost, the server is busy, and events come and go.
final class FlakyNetwork: Sendable {
  private struct State: Sendable {
    var generator: SeededGenerator
    var isPerfect = false
    var streams: [(scope: String, continuation: AsyncThrowingStream<Int, any Error>.Continuation)] = []
    var counts = Counts()
  }

  /// The number of requests that have failed, of events that were sent, and of questions for news.
  struct Counts: Sendable {
    var failures = 0
    var pokes = 0
    var polls = 0
  }

  let server = SimulatedSyncServer()
  private let state: Mutex<State>

  init(seed: UInt64) { state = Mutex(State(generator: SeededGenerator(seed))) }

  var counts: Counts { state.withLock { $0.counts } }
  func setPerfect() { state.withLock { $0.isPerfect = true } }

  fileprivate func countPoll() { state.withLock { $0.counts.polls += 1 } }

  /// Fails in so many of a hundred cases, and in none once the network is perfect.
  fileprivate func mayFail(_ percent: Int) throws(SyncProblem) {
    let problem: SyncProblem? = state.withLock { state in
      guard !state.isPerfect, state.generator.chance(percent) else { return nil }
      state.counts.failures += 1
      return [
        .unreachable("lost"), .unreachable("lost"), .unavailable(retryAfter: nil), .unavailable(retryAfter: 3),
        .tooManyRequests(retryAfter: 2), .refused(status: 408, detail: "late"),
      ][state.generator.int(0..<6)]
    }
    if let problem { throw problem }
  }

  /// Tells whoever watches the scope of a commit; on a bad network a stream may end with that.
  fileprivate func tell(_ scope: String) {
    state.withLock { state in
      var (left, told) = (state.streams, 0)
      left.removeAll { stream in
        guard stream.scope == scope else { return false }
        guard case .enqueued = stream.continuation.yield(1) else { return true }
        told += 1
        guard !state.isPerfect, state.generator.chance(30) else { return false }
        stream.continuation.finish()
        return true
      }
      state.streams = left
      state.counts.pokes += told
    }
  }

  fileprivate func events(of scope: String) -> AsyncThrowingStream<Int, any Error> {
    let (stream, continuation) = AsyncThrowingStream.makeStream(of: Int.self)
    state.withLock { $0.streams.append((scope, continuation)) }
    continuation.yield(0)
    return stream
  }
}

/// The way of one device.
struct FlakyTransport: SyncTransport {
  let network: FlakyNetwork

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    try network.mayFail(30)
    let reply = try network.server.push(SyncPush(json: push.json), to: scope)
    if reply.receipt.outcomes.contains(where: { if case .accepted = $0 { true } else { false } }) { network.tell(scope) }
    try network.mayFail(20)
    return try SyncPushReply(json: reply.json)
  }

  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    if request.wait > 0 { network.countPoll() }
    try network.mayFail(30)
    return try SyncChanges(json: network.server.changes(request, in: scope).json)
  }

  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> {
    try network.mayFail(50)
    return network.events(of: scope)
  }
}
