internal import Larder
internal import Synchronization

/// The reasons for the next exchange of a scope, and the wait for one.
final class ScopeAlarm: Sendable {
  private struct State: Sendable {
    /// Whether there is a reason: at first, since much may have changed while the process was not there.
    var isDue = true
    /// Whether a wait after a failure ends, too.
    var isUrgent = false
    /// Whether the server has answered since the last failure.
    var isAnswering = false
    /// The number of hints that the server may be reached again.
    var hintCount = 0
  }

  private let state = Mutex(State())
  private let signal = Signal()

  /// Notes that there is something to send or to take.
  func raise() {
    state.withLock { $0.isDue = true }
    signal.raise()
  }

  /// Notes that the server has news.
  func raiseForNews() {
    state.withLock { ($0.isDue, $0.isAnswering) = (true, true) }
    signal.raise()
  }

  /// Notes that the server has answered: what it could not be reached for may be tried at once.
  func noteAnswer() {
    state.withLock { $0.isAnswering = true }
    signal.raise()
  }

  /// Notes that the user has written something, which is to be sent, and that it is worthwhile to ask for news again.
  func raiseForEdit() {
    state.withLock { state in
      state.isDue = true
      state.hintCount += 1
    }
    signal.raise()
  }

  /// Notes that an exchange may now succeed that has failed before.
  func raiseUrgently() {
    state.withLock { state in
      (state.isDue, state.isUrgent) = (true, true)
      state.hintCount += 1
    }
    signal.raise()
  }

  /// The number of hints that the server may be reached again: by the user, by the network, by an exchange that has succeeded.
  var hintCount: Int { state.withLock { $0.hintCount } }

  /// Notes that the server may be reached again: the watch for news goes on at once, and no exchange begins.
  func hint() {
    state.withLock { $0.hintCount += 1 }
    signal.raise()
  }

  /// Returns at a time, or as soon as there is another hint than those that were seen; or when the task is cancelled.
  nonisolated(nonsending) func rest(until end: Duration, _ clock: any WallClock, unlessHinted seen: Int) async {
    let timer = timer(until: end, clock)
    await wait { $0.hintCount != seen || clock.uptime >= end }
    timer.cancel()
  }

  /// Returns when there is a reason for an exchange, or when the task is cancelled.
  nonisolated(nonsending) func wait() async {
    await wait { state in
      defer { if state.isDue { (state.isDue, state.isUrgent) = (false, false) } }
      return state.isDue
    }
  }

  /// Returns after a time, or as soon as an exchange may succeed; or when the task is cancelled.
  ///
  /// - Parameter endsWithAnswer: Whether it may succeed once the server has answered anything.
  nonisolated(nonsending) func wait(for time: Duration, _ clock: any WallClock, endsWithAnswer: Bool) async {
    let end = clock.uptime + time
    let timer = timer(until: end, clock)
    state.withLock { $0.isAnswering = false }
    await wait { $0.isUrgent || (endsWithAnswer && $0.isAnswering) || clock.uptime >= end }
    timer.cancel()
    state.withLock { ($0.isDue, $0.isUrgent) = (true, false) }
  }

  private func timer(until end: Duration, _ clock: any WallClock) -> Task<Void, Never> {
    Task { [self] in
      let left = end - clock.uptime
      do { if left > .zero { try await clock.sleep(for: left) } } catch { return }
      signal.raise()
    }
  }

  private nonisolated(nonsending) func wait(until isOver: @Sendable (inout State) -> Bool) async {
    while !Task.isCancelled {
      let moment = signal.moment
      if state.withLock({ isOver(&$0) }) { return }
      await signal.wait(after: moment)
    }
  }

  /// Runs an exchange whenever there is a reason for one, until the task is cancelled or the engine is gone.
  ///
  /// - Parameter exchange: Exchanges; returns whether the engine is still there.
  func run(_ clock: any WallClock, _ exchange: @Sendable () async throws -> Bool) async {
    var backoff = Backoff()
    // A run that was cancelled has taken its reason along: beside a failure, nothing else would begin the next exchange.
    raise()
    while !Task.isCancelled {
      await wait()
      do {
        guard !Task.isCancelled, try await exchange() else { return }
        backoff.reset()
        hint()
      } catch {
        // Any other failure is the server's own word, which may say how long to wait.
        let isUnreachable = if case SyncProblem.unreachable = error { true } else { false }
        if !Task.isCancelled { await wait(for: backoff.delay(after: error), clock, endsWithAnswer: isUnreachable) }
      }
    }
  }
}

/// The waits between exchanges that fail: full jitter, so that devices that failed together do not come back together.
struct Backoff: Sendable {
  private(set) var failures = 0

  static let base = Duration.seconds(1)
  static let cap = Duration.seconds(300)

  /// Returns how long to wait after one more failure.
  ///
  /// - Parameters:
  ///   - error: The failure; one that says how long to wait is believed, up to an hour.
  ///   - random: A number from 0 up to 1.
  mutating func delay(after error: any Error, random: Double = .random(in: 0..<1)) -> Duration {
    failures += 1
    switch error as? SyncProblem {
    case .unavailable(let seconds?)?, .tooManyRequests(let seconds?)?:
      guard seconds.isFinite else { return Self.cap * random }
      return .seconds(min(max(seconds, 0), 3_600)) + Self.base * random
    case let problem? where Self.isLasting(problem): return Self.cap * (0.5 + random / 2)
    default:
      var ceiling = Self.base
      for _ in 1..<min(failures, 20) where ceiling < Self.cap { ceiling = min(ceiling * 2, Self.cap) }
      return ceiling * random
    }
  }

  /// Whether the same request would get the same answer: what changes that is not here.
  private static func isLasting(_ problem: SyncProblem) -> Bool {
    switch problem {
    case .unauthorized, .forbidden, .upgradeRequired, .tooLarge, .answerTooLarge, .tooManyScopes: true
    case .refused(let status, _): status != 408
    default: false
    }
  }

  /// Whether a failure says how long to wait: nothing on this side shortens that.
  static func isAskedFor(after error: any Error) -> Bool {
    switch error as? SyncProblem {
    case .unavailable(.some)?, .tooManyRequests(.some)?: true
    default: false
    }
  }

  mutating func reset() { failures = 0 }
}
