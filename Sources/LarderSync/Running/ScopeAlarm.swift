internal import Larder
internal import LarderWire
internal import Synchronization

// Running/ holds the parts with which an engine syncs by itself: alarms of due scopes, waits after failures, and the watch for newer
// commits at the server.
// Invariant: a reason for an exchange that comes during an exchange of the scope leads to another exchange.
// Called by SyncEngine.

/// Wake-up flag of one scope: the reasons for the scope's next exchange, and the functions that wait for a reason.
///
/// A scope is a named part of the synced data, with an order of commits of its own at the server.
final class ScopeAlarm: Sendable {
  private struct State: Sendable {
    /// True if an exchange is due.
    ///
    /// The flag is initially true, since data may have changed while the process was not running.
    var isDue = true
    /// True if the reason for the due exchange also ends a wait after a failed exchange.
    var isUrgent = false
    /// True if the server has answered any request since the last failure.
    var isAnswering = false
    /// Number of hints so far that the server may be reachable again.
    var hintCount = 0
  }

  private let state = Mutex(State())
  private let signal = Signal()

  /// Marks an exchange of the scope as due, because there may be edits to send or changes to receive.
  func markDue() {
    state.withLock { $0.isDue = true }
    signal.raise()
  }

  /// Marks an exchange as due, because the server has newer commits of the scope.
  func markNews() {
    state.withLock { ($0.isDue, $0.isAnswering) = (true, true) }
    signal.raise()
  }

  /// Marks that the server has answered a request, which ends the wait after a failure to reach the server.
  func markAnswer() {
    state.withLock { $0.isAnswering = true }
    signal.raise()
  }

  /// Marks an exchange as due after a local edit, and lets `HeadWatch` poll the server again at once.
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

  /// Lets `HeadWatch` poll the server again at once, without starting an exchange.
  func hintReachable() {
    state.withLock { $0.hintCount += 1 }
    signal.raise()
  }

  /// Waits until a point in time, until a hint changes ``hintCount`` from `seen`, or until the task is cancelled.
  nonisolated(nonsending) func rest(until end: Duration, _ clock: any WallClock, unlessHinted seen: Int) async {
    let timer = timer(until: end, clock)
    await wait { $0.hintCount != seen || clock.uptime >= end }
    timer.cancel()
  }

  /// Waits until an exchange is due or the task is cancelled, and marks the exchange as no longer due.
  nonisolated(nonsending) func wait() async {
    await wait { state in
      // `isDue` is cleared before the exchange and not after it, since a reason that comes during the exchange must start another exchange.
      defer { if state.isDue { (state.isDue, state.isUrgent) = (false, false) } }
      return state.isDue
    }
  }

  /// Waits after a failed exchange, until the time is over, an urgent reason comes, or the task is cancelled.
  ///
  /// - Parameter endsWithAnswer: Whether any answer of the server during the wait ends the wait, too.
  nonisolated(nonsending) func wait(for time: Duration, _ clock: any WallClock, endsWithAnswer: Bool) async {
    let end = clock.uptime + time
    let timer = timer(until: end, clock)
    // An answer from before the failure does not show that the server is reachable now.
    state.withLock { $0.isAnswering = false }
    await wait { $0.isUrgent || (endsWithAnswer && $0.isAnswering) || clock.uptime >= end }
    timer.cancel()
    // The retry of the failed exchange is due even if no new reason came during the wait.
    state.withLock { ($0.isDue, $0.isUrgent) = (true, false) }
  }

  /// Starts a task that raises the signal at a point in time.
  ///
  /// The task is needed because `Signal.wait(after:)` has no timeout.
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
      // `signal.moment` is read before the check, so that a signal between the check and the wait is not missed.
      let moment = signal.moment
      if state.withLock({ isOver(&$0) }) { return }
      await signal.wait(after: moment)
    }
  }

  /// Runs an exchange whenever an exchange is due, until the task is cancelled or the engine no longer exists.
  ///
  /// - Parameter exchange: Runs one exchange. The closure returns false if the engine no longer exists.
  func run(_ clock: any WallClock, _ exchange: @Sendable () async throws -> Bool) async {
    var backoff = Backoff()
    // An earlier run that was cancelled may have cleared `isDue`. Without `markDue`, this run would then not begin with an exchange.
    markDue()
    while !Task.isCancelled {
      await wait()
      do {
        guard !Task.isCancelled, try await exchange() else { return }
        backoff.reset()
        hintReachable()
      } catch {
        // An answer of the server ends the wait only after `unreachable`, since with another failure the server may have set the time of
        // the retry.
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
  /// The limit of the random time doubles with each failure, from 1 s to 5 minutes. After a failure that a retry cannot change, such as
  /// 403, the time is 2.5 to 5 minutes.
  /// - Parameters:
  ///   - error: The failure. The `Retry-After` of a server's answer is respected, up to an hour.
  ///   - random: A number from 0 up to 1.
  mutating func delay(after error: any Error, random: Double = .random(in: 0..<1)) -> Duration {
    failures += 1
    switch error as? SyncProblem {
    case .unavailable(let seconds?)?, .tooManyRequests(let seconds?)?:
      // A server can send `Retry-After: nan`, and converting that to a `Duration` traps.
      guard seconds.isFinite else { return Self.cap * random }
      // Up to a second is added, so that clients with the same `Retry-After` do not return at the same moment.
      return .seconds(min(max(seconds, 0), 3_600)) + Self.base * random
    case let problem? where Self.isLasting(problem): return Self.cap * (0.5 + random / 2)
    default:
      var ceiling = Self.base
      // Nine doublings reach the cap of 5 minutes. The bound of 20 keeps the loop short after an outage with thousands of failures.
      for _ in 1..<min(failures, 20) where ceiling < Self.cap { ceiling = min(ceiling * 2, Self.cap) }
      return ceiling * random
    }
  }

  /// True if the same request would fail again, until the account, the token or the app changes.
  private static func isLasting(_ problem: SyncProblem) -> Bool {
    switch problem {
    case .unauthorized, .forbidden, .upgradeRequired, .tooLarge, .answerTooLarge, .tooManyScopes: true
    // A 408 means that the request arrived too slowly, and the network may be faster a second later.
    case .refused(let status, _): status != 408
    default: false
    }
  }

  /// True if the server has set the time of the retry, so that no event on the device shortens the wait.
  static func isAskedFor(after error: any Error) -> Bool {
    switch error as? SyncProblem {
    case .unavailable(.some)?, .tooManyRequests(.some)?: true
    default: false
    }
  }

  /// Resets the number of failures after a success, so that the next wait is short again.
  mutating func reset() { failures = 0 }
}
