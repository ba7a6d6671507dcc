import LarderSync
import LarderTesting
import Synchronization
import TestSupport

/// The way of one device to a simulated server: requests and answers are lost, the server is busy, and events come and go.
final class FlakyTransport: SyncTransport {
  private struct State: Sendable {
    var generator: SeededGenerator
    var isPerfect = false
    var streams: [AsyncThrowingStream<Int, any Error>.Continuation] = []
    var failures = 0
    var pokes = 0
    var polls = 0
  }

  private let server: SimulatedSyncServer
  private let state: Mutex<State>
  /// Tells all devices of a commit.
  private let told: @Sendable () -> Void

  init(_ server: SimulatedSyncServer, seed: UInt64, told: @escaping @Sendable () -> Void) {
    (self.server, self.told) = (server, told)
    state = Mutex(State(generator: SeededGenerator(seed)))
  }

  var failures: Int { state.withLock { $0.failures } }
  var pokes: Int { state.withLock { $0.pokes } }
  var polls: Int { state.withLock { $0.polls } }
  func setPerfect() { state.withLock { $0.isPerfect = true } }

  /// Sends an event to whoever watches; on a bad network the stream may end with it.
  func poke() {
    state.withLock { state in
      let endsNow = !state.isPerfect && state.generator.chance(30)
      for stream in state.streams {
        state.pokes += 1
        stream.yield(1)
        if endsNow { stream.finish() }
      }
      if endsNow { state.streams = [] }
    }
  }

  private func fail(_ percent: Int) throws(SyncProblem) {
    let problem: SyncProblem? = state.withLock { state in
      guard !state.isPerfect, state.generator.chance(percent) else { return nil }
      state.failures += 1
      return [
        .unreachable("lost"), .unreachable("lost"), .unavailable(retryAfter: nil), .unavailable(retryAfter: 3),
        .tooManyRequests(retryAfter: 2), .refused(status: 408, detail: "late"),
      ][state.generator.int(0..<6)]
    }
    if let problem { throw problem }
  }

  func push(_ push: SyncPush, to scope: String) async throws -> SyncPushReply {
    try fail(30)
    let reply = try server.push(SyncPush(json: push.json), to: scope)
    told()
    try fail(20)
    return try SyncPushReply(json: reply.json)
  }

  func changes(_ request: SyncChangesRequest, in scope: String) async throws -> SyncChanges {
    if request.wait > 0 { state.withLock { $0.polls += 1 } }
    try fail(30)
    return try SyncChanges(json: server.changes(request, in: scope).json)
  }

  func heads(of scope: String) async throws -> AsyncThrowingStream<Int, any Error> {
    try fail(50)
    let (stream, continuation) = AsyncThrowingStream.makeStream(of: Int.self)
    state.withLock { $0.streams.append(continuation) }
    continuation.yield(0)
    return stream
  }
}
