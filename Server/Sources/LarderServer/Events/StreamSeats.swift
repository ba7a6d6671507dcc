internal import LarderWire
internal import Synchronization

/// Counter of open event streams and long polls, limited in all and for each identity.
final class StreamSeats: Sendable {
  /// Place of one stream or long poll in the count, given back when the last reference to this object is dropped.
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

  /// Creates a counter with a maximum for all identities together and one for each.
  init(total: Int, perIdentity: Int) { (self.total, self.perIdentity) = (total, perIdentity) }

  /// Takes a place in the count.
  ///
  /// - Parameter identity: The identity of the client, or `nil` on a server where all clients are one identity.
  /// - Throws: `.unavailable` if all places are taken, `.tooManyRequests` if the identity has its maximum.
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
      // Removed at zero, or the dictionary would grow with every identity that ever connected.
      state.byIdentity[identity] = count > 1 ? count - 1 : nil
    }
  }
}
