internal import Larder
internal import Synchronization

/// The reasons for the next exchange of a scope, and the wait for one.
final class ScopeAlarm: Sendable {
  private struct State: Sendable {
    /// Whether there is a reason: at first, since much may have changed while the process was not there.
    var isDue = true
    /// Whether a wait after a failure ends, too.
    var isUrgent = false
  }

  private let state = Mutex(State())
  private let signal = Signal()

  /// Notes that there is something to send or to take.
  func raise() {
    state.withLock { $0.isDue = true }
    signal.raise()
  }

  /// Notes that an exchange may now succeed that has failed before.
  func raiseUrgently() {
    state.withLock { ($0.isDue, $0.isUrgent) = (true, true) }
    signal.raise()
  }

  /// Returns when there is a reason for an exchange, or when the task is cancelled.
  nonisolated(nonsending) func wait() async {
    await wait { state in
      defer { if state.isDue { state = State(isDue: false) } }
      return state.isDue
    }
  }

  /// Returns after a time, or as soon as an exchange may succeed; or when the task is cancelled.
  nonisolated(nonsending) func wait(for time: Duration, _ clock: any WallClock) async {
    let end = clock.uptime + time
    let timer = Task { [self] in
      do { try await clock.sleep(for: time) } catch { return }
      signal.raise()
    }
    await wait { $0.isUrgent || clock.uptime >= end }
    timer.cancel()
    state.withLock { ($0.isDue, $0.isUrgent) = (true, false) }
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
    while !Task.isCancelled {
      await wait()
      do {
        guard !Task.isCancelled, try await exchange() else { return }
        backoff.reset()
      } catch {
        if !Task.isCancelled { await wait(for: backoff.delay(after: error), clock) }
      }
    }
  }
}
