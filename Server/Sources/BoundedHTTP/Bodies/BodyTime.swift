package import Larder
internal import Synchronization

/// The time that the body of a request has: a slow line is given it again for each piece that has come, a byte a second is not.
package final class BodyTime: Sendable {
  private struct State: Sendable {
    /// The bytes that have come since the time began.
    var taken = 0
    var end: Duration
  }

  /// The bytes that must come in the time, unless fewer are left.
  package static let piece = ConnectionGuard.piece

  private let seconds: Int
  private let clock: any WallClock
  private let state: Mutex<State>

  package init(seconds: Int, clock: any WallClock) {
    (self.seconds, self.clock) = (seconds, clock)
    state = Mutex(State(end: clock.uptime + .seconds(seconds)))
  }

  /// Notes that bytes have come.
  package func note(_ count: Int) {
    let end = clock.uptime + .seconds(seconds)
    state.withLock { state in
      state.taken += count
      if state.taken >= Self.piece { state = State(end: end) }
    }
  }

  /// Returns when the time is over.
  ///
  /// - Throws: `CancellationError`.
  package func pass() async throws {
    while case let left = state.withLock({ $0.end }) - clock.uptime, left > .zero { try await clock.sleep(for: left) }
  }
}
