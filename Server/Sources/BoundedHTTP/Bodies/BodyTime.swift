package import Larder
internal import Synchronization

/// Deadline for the body of a request, renewed with each 64 KiB received.
///
/// So a body on a slow line arrives, and a client that sends a byte a second is refused.
package final class BodyTime: Sendable {
  private struct State: Sendable {
    /// Number of bytes received since the deadline was last renewed.
    var taken = 0
    var end: Duration
  }

  /// Number of bytes that renew the deadline.
  ///
  /// Fewer are enough only at the end of the body.
  package static let piece = ConnectionGuard.piece

  private let seconds: Int
  private let clock: any WallClock
  private let state: Mutex<State>

  package init(seconds: Int, clock: any WallClock) {
    (self.seconds, self.clock) = (seconds, clock)
    state = Mutex(State(end: clock.uptime + .seconds(seconds)))
  }

  /// Counts received bytes, and renews the deadline after each 64 KiB.
  package func note(_ count: Int) {
    let end = clock.uptime + .seconds(seconds)
    state.withLock { state in
      state.taken += count
      // Not with every part: a part may be one byte, and would keep the connection for ever.
      if state.taken >= Self.piece { state = State(end: end) }
    }
  }

  /// Returns once the deadline has passed.
  ///
  /// - Throws: `CancellationError`.
  package func pass() async throws {
    // Compared again after each sleep, because received bytes may have moved the deadline.
    while case let left = state.withLock({ $0.end }) - clock.uptime, left > .zero { try await clock.sleep(for: left) }
  }
}
