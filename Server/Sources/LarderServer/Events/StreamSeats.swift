internal import LarderSync
internal import Synchronization

/// The event streams and long polls that are open, counted in all and for each identity.
final class StreamSeats: Sendable {
  /// The place of one stream or long poll, which is free again when nothing refers to this object.
  ///
  /// A stream ends in several ways, and its client may be gone before the first byte of the answer. All of them drop the object.
  final class Seat: Sendable {
    private let seats: StreamSeats
    private let identity: String?

    fileprivate init(_ seats: StreamSeats, _ identity: String?) { (self.seats, self.identity) = (seats, identity) }
    deinit { seats.free(identity) }
  }

  private struct State: Sendable {
    var total = 0
    var byIdentity: [String: Int] = [:]
  }

  private let state = Mutex(State())
  private let total: Int
  private let perIdentity: Int

  /// Makes seats for a number of streams, of which one identity has a part at most.
  init(total: Int, perIdentity: Int) { (self.total, self.perIdentity) = (total, perIdentity) }

  /// Takes a seat.
  ///
  /// - Parameter identity: The identity that has it; `nil` where everybody is the same one.
  /// - Throws: `.unavailable` where all seats are taken, `.tooManyRequests` where the identity has its part.
  func take(for identity: String?) throws(SyncProblem) -> Seat {
    try state.withLock { (state) throws(SyncProblem) in
      guard state.total < total else { throw .unavailable(retryAfter: 5) }
      if let identity {
        guard state.byIdentity[identity, default: 0] < perIdentity else { throw .tooManyRequests(retryAfter: 5) }
        state.byIdentity[identity, default: 0] += 1
      }
      state.total += 1
    }
    return Seat(self, identity)
  }

  private func free(_ identity: String?) {
    state.withLock { state in
      state.total -= 1
      guard let identity, let count = state.byIdentity[identity] else { return }
      state.byIdentity[identity] = count > 1 ? count - 1 : nil
    }
  }
}
