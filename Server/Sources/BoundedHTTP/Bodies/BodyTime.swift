internal import Synchronization

/// Deadline for the body of a request, renewed with each 64 KiB received.
///
/// So a body on a slow line arrives, and a client that sends a byte a second is refused.
package final class BodyTime<Time: Clock>: Sendable where Time.Duration == Duration {
  private struct State: Sendable {
    /// Number of bytes received since the deadline was last renewed.
    var taken = 0
    var end: Time.Instant
  }

  private let seconds: Int
  private let clock: Time
  private let state: Mutex<State>

  package init(seconds: Int, clock: Time) {
    (self.seconds, self.clock) = (seconds, clock)
    state = Mutex(State(end: clock.now.advanced(by: .seconds(seconds))))
  }

  /// Counts received bytes, and renews the deadline after each 64 KiB.
  package func note(_ count: Int) {
    let end = clock.now.advanced(by: .seconds(seconds))
    state.withLock { state in
      state.taken += count
      // Not with every part: a part may be one byte, and would keep the connection for ever.
      if state.taken >= ConnectionGuard.piece { state = State(end: end) }
    }
  }

  /// Returns once the deadline has passed.
  ///
  /// - Throws: `CancellationError`.
  package func pass() async throws {
    // Compared again after each sleep, because received bytes may have moved the deadline.
    while case let end = state.withLock({ $0.end }), end > clock.now { try await clock.sleep(until: end, tolerance: nil) }
  }
}
