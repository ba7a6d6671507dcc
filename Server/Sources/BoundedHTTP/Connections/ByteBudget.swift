internal import Synchronization

// Connections/ limits the time, memory and number of connections. Invariant: no client keeps memory or a connection by being slow, and
// no identity takes the memory that all others need. Called by `BoundedServer`.

/// Budget for the bytes of requests and answers held in memory, in all and for each identity.
package final class ByteBudget: Sendable {
  private struct State: Sendable {
    var all = 0
    var shares: [String: Int] = [:]
  }

  private let held = Mutex(State())
  private let limit: Int
  /// Divisor that gives one identity at most a quarter of the budget, so that its unread answers do not block all others.
  private static let identities = 4

  package init(_ limit: Int) { self.limit = limit }

  /// Number of bytes held for all identities.
  package var bytes: Int { held.withLock { $0.all } }

  /// Returns the share of an identity.
  ///
  /// Without an identity, only the whole budget is a limit.
  package func share(of identity: String?) -> ByteShare { ByteShare(budget: self, identity: identity) }

  fileprivate func isSpent(for identity: String?) -> Bool {
    held.withLock { held in
      if held.all >= limit { return true }
      // At least 1, so that an identity that holds nothing gets a page even with a tiny budget.
      return identity.map { held.shares[$0, default: 0] >= max(limit / Self.identities, 1) } ?? false
    }
  }

  fileprivate func add(_ count: Int, for identity: String?) {
    held.withLock { held in
      held.all += count
      guard let identity else { return }
      let share = held.shares[identity, default: 0] + count
      // Removed at zero, or the dictionary would grow with every identity that ever asked.
      held.shares[identity] = share == 0 ? nil : share
    }
  }
}

/// Part of a byte budget that belongs to one identity.
///
/// Sent on a connection as an outbound event, the share says whose answers come next.
package struct ByteShare: Sendable {
  fileprivate let budget: ByteBudget
  package let identity: String?

  /// Whether the budget or the identity's part of it is used up, so that requests for more memory must be refused.
  package var isSpent: Bool { budget.isSpent(for: identity) }

  /// Adds to the held bytes, or subtracts with a negative count.
  package func add(_ count: Int) { budget.add(count, for: identity) }
}
