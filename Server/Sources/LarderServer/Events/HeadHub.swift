internal import Synchronization

// Events/ announces newer commits of scopes. Invariant: a sign (an announcement) carries no data and may be lost, and a client that reads
// afterwards misses nothing. Called by HTTP after a push, and by HeadWatch for the commits of other processes.

/// Announcement to a waiter: a newer commit for a long poll, or a heartbeat for an event stream.
enum HeadSign: Sendable {
  case head(Int)
  case beat
}

/// Announcements (signs) for one event stream or long poll, with a way to end them.
struct HeadSigns: Sendable {
  let signs: AsyncStream<HeadSign>
  fileprivate let continuation: AsyncStream<HeadSign>.Continuation
  fileprivate let scope: String
  fileprivate let number: Int

  /// Ends the sequence of signs.
  func end() { continuation.finish() }
}

/// Event streams and long polls that wait for commits, by scope.
final class HeadHub: Sendable {
  private struct Waiter: Sendable {
    var signs: AsyncStream<HeadSign>.Continuation
    var sink: EventSink?
    let isStream: Bool
  }

  private struct Scope: Sendable {
    var head = 0
    var waiters: [Int: Waiter] = [:]
    /// Whether the streams of the scope got an event a moment ago, so that the next one waits for the end of the pause.
    var isPausing = false
  }

  private struct State: Sendable {
    var scopes: [String: Scope] = [:]
    var next = 0
    var isClosed = false
  }

  private let state = Mutex(State())
  private let pause: Duration

  /// - Parameter pause: The time after an event within which all commits of a scope become one event.
  init(pause: Duration = .zero) { self.pause = pause }

  /// Returns the signs of a scope from now on, until the hub closes.
  ///
  /// A slow reader gets only the newest sign.
  func signs(of scope: String, isStream: Bool = false) -> HeadSigns {
    let (stream, continuation) = AsyncStream.makeStream(of: HeadSign.self, bufferingPolicy: .bufferingNewest(1))
    let number: Int? = state.withLock { state in
      if state.isClosed { return nil }
      state.next += 1
      state.scopes[scope, default: Scope()].waiters[state.next] = Waiter(signs: continuation, isStream: isStream)
      return state.next
    }
    if let number {
      // Weak, since the hub holds the continuation.
      continuation.onTermination = { [weak self] _ in self?.remove(number, from: scope) }
    } else {
      continuation.finish()
    }
    return HeadSigns(signs: stream, continuation: continuation, scope: scope, number: number ?? 0)
  }

  private func remove(_ number: Int, from scope: String) {
    state.withLock { state in
      state.scopes[scope]?.waiters[number] = nil
      // Clients choose the names of scopes, so a scope without waiters must not stay in memory.
      if state.scopes[scope]?.waiters.isEmpty == true { state.scopes[scope] = nil }
    }
  }

  /// Writes the events of a stream to its connection from now on, and at once if the newest commit is not announced yet.
  func connect(_ signs: HeadSigns, to sink: EventSink) {
    let head = state.withLock { state in
      state.scopes[signs.scope]?.waiters[signs.number]?.sink = sink
      return state.scopes[signs.scope]?.head ?? 0
    }
    // A commit between the subscription and this call would otherwise reach the stream only with the next commit.
    EventSink.tell(head, to: [sink])
  }

  /// Announces a commit to the streams and long polls of a scope, unless a newer one was announced.
  func publish(_ head: Int, of scope: String) {
    let (polls, sinks) = state.withLock { state -> ([AsyncStream<HeadSign>.Continuation], [EventSink]) in
      guard let found = state.scopes[scope], head > found.head else { return ([], []) }
      state.scopes[scope]?.head = head
      let polls = found.waiters.values.compactMap { $0.isStream ? nil : $0.signs }
      return (polls, found.isPausing ? [] : Self.sinks(in: &state, of: scope))
    }
    for poll in polls { poll.yield(.head(head)) }
    tell(head, of: scope, to: sinks)
  }

  /// Returns the streams of a scope, and begins their pause.
  private static func sinks(in state: inout State, of scope: String) -> [EventSink] {
    let sinks = state.scopes[scope]?.waiters.values.compactMap(\.sink) ?? []
    state.scopes[scope]?.isPausing = !sinks.isEmpty
    return sinks
  }

  private func tell(_ head: Int, of scope: String, to sinks: [EventSink]) {
    if sinks.isEmpty { return }
    EventSink.tell(head, to: sinks)
    Task { [weak self, pause] in
      // No code cancels this task, so the sleep does not throw.
      do { try await Task.sleep(for: pause) } catch {}
      self?.resume(scope, behind: head)
    }
  }

  /// Ends the pause of a scope's streams, and announces the newest commit made during it.
  private func resume(_ scope: String, behind told: Int) {
    let (head, sinks) = state.withLock { state -> (Int, [EventSink]) in
      state.scopes[scope]?.isPausing = false
      guard let head = state.scopes[scope]?.head, head > told else { return (told, []) }
      return (head, Self.sinks(in: &state, of: scope))
    }
    tell(head, of: scope, to: sinks)
  }

  /// Sends a heartbeat to one of `parts` equal parts of the streams.
  func beat(_ part: Int = 0, of parts: Int = 1) {
    let streams = state.withLock { state in
      state.scopes.values.flatMap { scope in
        scope.waiters.compactMap { number, waiter in waiter.isStream && number % parts == part ? waiter.signs : nil }
      }
    }
    for stream in streams { stream.yield(.beat) }
  }

  /// Scopes with waiters, each with the newest commit that this process has announced.
  var heads: [String: Int] { state.withLock { $0.scopes.mapValues(\.head) } }
  /// Number of event streams and long polls.
  var count: Int { state.withLock { state in state.scopes.values.reduce(0) { $0 + $1.waiters.count } } }

  /// Ends all streams and long polls, or those of one scope, and forgets the newest commits that were announced to them.
  func endStreams(of scope: String? = nil) {
    let waiters = state.withLock { state in
      guard let scope else {
        defer { state.scopes = [:] }
        return state.scopes.values.flatMap { Array($0.waiters.values) }
      }
      return state.scopes.removeValue(forKey: scope).map { Array($0.waiters.values) } ?? []
    }
    // Outside of the lock, which `remove` takes when a sequence of signs ends.
    for waiter in waiters { waiter.signs.finish() }
  }

  /// Ends all streams and long polls, and each that begins afterwards.
  func close() {
    let waiters = state.withLock { state in
      state.isClosed = true
      return state.scopes.values.flatMap { Array($0.waiters.values) }
    }
    // Outside of the lock, as in `endStreams`.
    for waiter in waiters { waiter.signs.finish() }
  }
}
