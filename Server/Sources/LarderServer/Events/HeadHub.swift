internal import Synchronization

// Events/ tells that a scope has a newer commit. Invariant: a sign carries no data and may be lost; whoever asks afterwards misses nothing.
// Called by HTTP after a push, and by HeadWatch for the commits of other processes.

/// The sign that a waiter gets: a newer commit for a long poll, a beat for a stream.
enum HeadSign: Sendable {
  case head(Int)
  case beat
}

/// The signs of one stream or long poll, and the way to end them.
struct HeadSigns: Sendable {
  let signs: AsyncStream<HeadSign>
  fileprivate let continuation: AsyncStream<HeadSign>.Continuation
  fileprivate let scope: String
  fileprivate let number: Int

  /// Ends the signs.
  func end() { continuation.finish() }
}

/// The streams and long polls that wait for commits, by scope.
final class HeadHub: Sendable {
  private struct Waiter: Sendable {
    var signs: AsyncStream<HeadSign>.Continuation
    var sink: EventSink?
    let isStream: Bool
  }

  private struct Scope: Sendable {
    var head = 0
    var waiters: [Int: Waiter] = [:]
    /// Whether its streams were told of a commit a moment ago.
    var isPausing = false
  }

  private struct State: Sendable {
    var scopes: [String: Scope] = [:]
    var next = 0
    var isClosed = false
  }

  private let state = Mutex(State())
  private let pause: Duration

  /// - Parameter pause: The time after an event within which the commits of a scope become one event.
  init(pause: Duration = .zero) { self.pause = pause }

  /// Returns the signs of a scope, from now on; a slow reader gets the newest only, and they end with the hub.
  func signs(of scope: String, isStream: Bool = false) -> HeadSigns {
    let (stream, continuation) = AsyncStream.makeStream(of: HeadSign.self, bufferingPolicy: .bufferingNewest(1))
    let number: Int? = state.withLock { state in
      if state.isClosed { return nil }
      state.next += 1
      state.scopes[scope, default: Scope()].waiters[state.next] = Waiter(signs: continuation, isStream: isStream)
      return state.next
    }
    if let number {
      continuation.onTermination = { [weak self] _ in self?.remove(number, from: scope) }
    } else {
      continuation.finish()
    }
    return HeadSigns(signs: stream, continuation: continuation, scope: scope, number: number ?? 0)
  }

  private func remove(_ number: Int, from scope: String) {
    state.withLock { state in
      state.scopes[scope]?.waiters[number] = nil
      if state.scopes[scope]?.waiters.isEmpty == true { state.scopes[scope] = nil }
    }
  }

  /// Writes events of a stream to its connection from now on, and what it does not know yet at once.
  func connect(_ signs: HeadSigns, to sink: EventSink) {
    let head = state.withLock { state in
      state.scopes[signs.scope]?.waiters[signs.number]?.sink = sink
      return state.scopes[signs.scope]?.head ?? 0
    }
    EventSink.tell(head, to: [sink])
  }

  /// Tells the streams and long polls of a scope about a commit, unless they know of a newer one.
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

  /// Returns the streams of a scope, which pause then.
  private static func sinks(in state: inout State, of scope: String) -> [EventSink] {
    let sinks = state.scopes[scope]?.waiters.values.compactMap(\.sink) ?? []
    state.scopes[scope]?.isPausing = !sinks.isEmpty
    return sinks
  }

  private func tell(_ head: Int, of scope: String, to sinks: [EventSink]) {
    if sinks.isEmpty { return }
    EventSink.tell(head, to: sinks)
    Task { [weak self, pause] in
      // Nobody ends it.
      do { try await Task.sleep(for: pause) } catch {}
      self?.resume(scope, behind: head)
    }
  }

  /// Tells the streams of a scope what was committed while they paused.
  private func resume(_ scope: String, behind told: Int) {
    let (head, sinks) = state.withLock { state -> (Int, [EventSink]) in
      state.scopes[scope]?.isPausing = false
      guard let head = state.scopes[scope]?.head, head > told else { return (told, []) }
      return (head, Self.sinks(in: &state, of: scope))
    }
    tell(head, of: scope, to: sinks)
  }

  /// Lets some of the streams show that they are alive: each in one of so many parts.
  func beat(_ part: Int = 0, of parts: Int = 1) {
    let streams = state.withLock { state in
      state.scopes.values.flatMap { scope in
        scope.waiters.compactMap { number, waiter in waiter.isStream && number % parts == part ? waiter.signs : nil }
      }
    }
    for stream in streams { stream.yield(.beat) }
  }

  /// The scopes that somebody waits for, each with the newest commit that is known here.
  var heads: [String: Int] { state.withLock { $0.scopes.mapValues(\.head) } }
  /// The number of streams and long polls.
  var count: Int { state.withLock { state in state.scopes.values.reduce(0) { $0 + $1.waiters.count } } }

  /// Ends all streams, or those of a scope, whose devices then begin others: what was known of the heads does not count any more.
  func endStreams(of scope: String? = nil) {
    let waiters = state.withLock { state in
      guard let scope else {
        defer { state.scopes = [:] }
        return state.scopes.values.flatMap { Array($0.waiters.values) }
      }
      return state.scopes.removeValue(forKey: scope).map { Array($0.waiters.values) } ?? []
    }
    for waiter in waiters { waiter.signs.finish() }
  }

  /// Ends all streams, and those that come from now on.
  func close() {
    let waiters = state.withLock { state in
      state.isClosed = true
      return state.scopes.values.flatMap { Array($0.waiters.values) }
    }
    for waiter in waiters { waiter.signs.finish() }
  }
}
