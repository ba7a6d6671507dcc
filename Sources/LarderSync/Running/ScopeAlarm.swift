internal import Larder
internal import LarderWire
internal import Synchronization

// Running/ holds the parts with which an engine runs by itself: due scopes, waits after failures, the watch for news.
// Invariant: a reason for an exchange that comes during one leads to another one. Called by SyncEngine.

/// Wake-up flag of one scope: the reasons for its next exchange, and the waits for one.
///
/// A scope is a named part of the synced data, with an order of commits of its own at the server.
final class ScopeAlarm: Sendable {
  private struct State: Sendable {
    /// True if an exchange is due.
    ///
    /// Initially true, since data may have changed while the process was not running.
    var isDue = true
    /// True if the reason for the exchange also ends a wait after a failure.
    var isUrgent = false
    /// True if the server has answered any request since the last failure.
    var isAnswering = false
    /// Number of hints so far that the server may be reachable again.
    var hintCount = 0
  }

  private let state = Mutex(State())
  private let signal = Signal()

  /// Marks an exchange as due, because there is something to send or to receive.
  func markDue() {
    state.withLock { $0.isDue = true }
    signal.raise()
  }

  /// Marks an exchange as due, because the server has news.
  func markNews() {
    state.withLock { ($0.isDue, $0.isAnswering) = (true, true) }
    signal.raise()
  }

  /// Notes that the server has answered, which ends a wait after an unreachable server.
  func markAnswer() {
    state.withLock { $0.isAnswering = true }
    signal.raise()
  }

  /// Marks an exchange as due after a local edit, and lets the watch for news poll again at once.
  func markEdit() {
    state.withLock { state in
      state.isDue = true
      state.hintCount += 1
    }
    signal.raise()
  }

  /// Marks an exchange as due at once, even during a wait after a failure.
  func markUrgent() {
    state.withLock { state in
      (state.isDue, state.isUrgent) = (true, true)
      state.hintCount += 1
    }
    signal.raise()
  }

  /// Number of hints so far that the server may be reachable again.
  ///
  /// Local edits, changes of the network, successful exchanges and `wake()` are hints.
  var hintCount: Int { state.withLock { $0.hintCount } }

  /// Lets the watch for news poll again at once, without starting an exchange.
  func hintReachable() {
    state.withLock { $0.hintCount += 1 }
    signal.raise()
  }

  /// Waits until a point in time, a hint newer than `seen`, or the cancellation of the task.
  nonisolated(nonsending) func rest(until end: Duration, _ clock: any WallClock, unlessHinted seen: Int) async {
    let timer = timer(until: end, clock)
    await wait { $0.hintCount != seen || clock.uptime >= end }
    timer.cancel()
  }

  /// Waits until an exchange is due or the task is cancelled, and clears the flag.
  nonisolated(nonsending) func wait() async {
    await wait { state in
      // Cleared here and not after the exchange: a reason that comes during it must start another one.
      defer { if state.isDue { (state.isDue, state.isUrgent) = (false, false) } }
      return state.isDue
    }
  }

  /// Waits after a failed exchange, until the time is over, an urgent reason comes, or the task is cancelled.
  ///
  /// - Parameter endsWithAnswer: Whether any answer of the server ends the wait, too.
  nonisolated(nonsending) func wait(for time: Duration, _ clock: any WallClock, endsWithAnswer: Bool) async {
    let end = clock.uptime + time
    let timer = timer(until: end, clock)
    // An answer from before the failure does not show that the server is reachable now.
    state.withLock { $0.isAnswering = false }
    await wait { $0.isUrgent || (endsWithAnswer && $0.isAnswering) || clock.uptime >= end }
    timer.cancel()
    // The retry is due even if no new reason came during the wait.
    state.withLock { ($0.isDue, $0.isUrgent) = (true, false) }
  }

  /// Starts a task that raises the signal at a point in time.
  ///
  /// A wait for the signal has no timeout of its own.
  private func timer(until end: Duration, _ clock: any WallClock) -> Task<Void, Never> {
    Task { [self] in
      let left = end - clock.uptime
      do { if left > .zero { try await clock.sleep(for: left) } } catch { return }
      signal.raise()
    }
  }

  /// Waits until a condition on the state holds or the task is cancelled.
  private nonisolated(nonsending) func wait(until isOver: @Sendable (inout State) -> Bool) async {
    while !Task.isCancelled {
      // Before the check: a signal between the check and the wait would be missed otherwise.
      let moment = signal.moment
      if state.withLock({ isOver(&$0) }) { return }
      await signal.wait(after: moment)
    }
  }

  /// Runs an exchange whenever one is due, until the task is cancelled or the engine is gone.
  ///
  /// - Parameter exchange: Runs one exchange. It returns false if the engine no longer exists.
  func run(_ clock: any WallClock, _ exchange: @Sendable () async throws -> Bool) async {
    var backoff = Backoff()
    // A cancelled run has cleared the flag. Without this line, the next run would not begin with an exchange after a failure.
    markDue()
    while !Task.isCancelled {
      await wait()
      do {
        guard !Task.isCancelled, try await exchange() else { return }
        backoff.reset()
        hintReachable()
      } catch {
        // Any other failure is an answer of the server, which may have set the time of the retry.
        let isUnreachable = if case SyncProblem.unreachable = error { true } else { false }
        if !Task.isCancelled { await wait(for: backoff.delay(after: error), clock, endsWithAnswer: isUnreachable) }
      }
    }
  }
}

/// Exponential back-off with full jitter, for exchanges that fail.
///
/// Jitter spreads the retries of devices that failed at the same moment.
struct Backoff: Sendable {
  private(set) var failures = 0

  static let base = Duration.seconds(1)
  static let cap = Duration.seconds(300)

  /// Counts one more failure and returns the time to wait before the retry.
  ///
  /// Doubles from up to 1 s to up to 5 minutes. A failure that a retry cannot change, such as 403, waits 2.5 to 5 minutes.
  /// - Parameters:
  ///   - error: The failure. A `Retry-After` in it is kept to, up to an hour.
  ///   - random: A number from 0 up to 1.
  mutating func delay(after error: any Error, random: Double = .random(in: 0..<1)) -> Duration {
    failures += 1
    switch error as? SyncProblem {
    case .unavailable(let seconds?)?, .tooManyRequests(let seconds?)?:
      // A server can send `Retry-After: nan`, and converting that to a `Duration` traps.
      guard seconds.isFinite else { return Self.cap * random }
      // Up to a second more, so that clients with the same `Retry-After` do not return together.
      return .seconds(min(max(seconds, 0), 3_600)) + Self.base * random
    case let problem? where Self.isLasting(problem): return Self.cap * (0.5 + random / 2)
    default:
      var ceiling = Self.base
      // The cap is reached after nine doublings. The bound keeps a long outage from looping for each of its failures.
      for _ in 1..<min(failures, 20) where ceiling < Self.cap { ceiling = min(ceiling * 2, Self.cap) }
      return ceiling * random
    }
  }

  /// True if the same request would fail again, until the account, the token or the app changes.
  private static func isLasting(_ problem: SyncProblem) -> Bool {
    switch problem {
    case .unauthorized, .forbidden, .upgradeRequired, .tooLarge, .answerTooLarge, .tooManyScopes: true
    // A 408 is a slow line, which may be faster a second later.
    case .refused(let status, _): status != 408
    default: false
    }
  }

  /// True if the server has set the time of the retry, which no event on the device shortens.
  static func isAskedFor(after error: any Error) -> Bool {
    switch error as? SyncProblem {
    case .unavailable(.some)?, .tooManyRequests(.some)?: true
    default: false
    }
  }

  /// Resets the wait after a success.
  mutating func reset() { failures = 0 }
}
