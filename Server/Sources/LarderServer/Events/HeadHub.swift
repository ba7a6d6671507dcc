internal import Synchronization

// Events/ tells that a scope has a newer commit. Invariant: a sign carries no data and may be lost; whoever asks afterwards misses nothing.
// Called by HTTP after a push, and by HeadWatch for the commits of other processes.

/// The sign that a stream gets: the newest commit that is known, again at every beat.
struct HeadSign: Sendable {
  var head: Int
  var isBeat = false
}

/// The signs of one stream, and the way to end them.
struct HeadSigns: Sendable {
  let signs: AsyncStream<HeadSign>
  fileprivate let continuation: AsyncStream<HeadSign>.Continuation

  /// Ends the signs.
  func end() { continuation.finish() }
}

/// The streams and long polls that wait for commits, by scope.
final class HeadHub: Sendable {
  private struct Scope: Sendable {
    var head = 0
    var waiters: [Int: AsyncStream<HeadSign>.Continuation] = [:]
  }

  private struct State: Sendable {
    var scopes: [String: Scope] = [:]
    var next = 0
    var isClosed = false
  }

  private let state = Mutex(State())

  /// Returns the signs of a scope, from now on; a slow reader gets the newest only, and they end with the hub.
  func signs(of scope: String, head: Int) -> HeadSigns {
    let (stream, continuation) = AsyncStream.makeStream(of: HeadSign.self, bufferingPolicy: .bufferingNewest(1))
    let number: Int? = state.withLock { state in
      if state.isClosed { return nil }
      state.next += 1
      state.scopes[scope, default: Scope()].waiters[state.next] = continuation
      state.scopes[scope, default: Scope()].head = max(state.scopes[scope]?.head ?? 0, head)
      return state.next
    }
    guard let number else {
      continuation.finish()
      return HeadSigns(signs: stream, continuation: continuation)
    }
    continuation.onTermination = { [weak self] _ in self?.remove(number, from: scope) }
    return HeadSigns(signs: stream, continuation: continuation)
  }

  private func remove(_ number: Int, from scope: String) {
    state.withLock { state in
      state.scopes[scope]?.waiters[number] = nil
      if state.scopes[scope]?.waiters.isEmpty == true { state.scopes[scope] = nil }
    }
  }

  /// Tells the streams of a scope about a commit, unless they know of a newer one.
  func publish(_ head: Int, of scope: String) {
    let waiters = state.withLock { state -> [AsyncStream<HeadSign>.Continuation] in
      guard let found = state.scopes[scope], head > found.head else { return [] }
      state.scopes[scope]?.head = head
      return Array(found.waiters.values)
    }
    for waiter in waiters { waiter.yield(HeadSign(head: head)) }
  }

  /// Tells all streams what they know already, so that they show that they are alive.
  func beat() {
    let waiters = state.withLock { state in state.scopes.values.flatMap { scope in scope.waiters.values.map { ($0, scope.head) } } }
    for (waiter, head) in waiters { waiter.yield(HeadSign(head: head, isBeat: true)) }
  }

  /// The scopes that somebody waits for.
  var watched: [String] { state.withLock { Array($0.scopes.keys) } }
  /// The number of streams and long polls.
  var count: Int { state.withLock { state in state.scopes.values.reduce(0) { $0 + $1.waiters.count } } }

  /// Ends all streams, whose devices then begin others: what was known of the heads does not count any more.
  func endStreams() {
    let waiters = state.withLock { state in
      defer { state.scopes = [:] }
      return state.scopes.values.flatMap { Array($0.waiters.values) }
    }
    for waiter in waiters { waiter.finish() }
  }

  /// Ends all streams, and those that come from now on.
  func close() {
    let waiters = state.withLock { state in
      state.isClosed = true
      return state.scopes.values.flatMap { Array($0.waiters.values) }
    }
    for waiter in waiters { waiter.finish() }
  }
}
