internal import Synchronization

// Connections/ bounds what single connections and all of them together may hold: time, memory, number. Invariant: no client can keep
// memory or a connection by being slow, and no identity what all others need. Called by HTTP.

/// The bytes of requests and answers that are held for clients, all together and for each identity.
package final class ByteBudget: Sendable {
  private struct State: Sendable {
    var all = 0
    var shares: [String: Int] = [:]
  }

  private let held = Mutex(State())
  private let limit: Int
  /// The part of the whole that one identity may hold: what its clients do not read must not refuse everybody else.
  private static let identities = 4

  package init(_ limit: Int) { self.limit = limit }

  /// The bytes that are held.
  package var bytes: Int { held.withLock { $0.all } }

  /// Returns the share of an identity; without one, only the whole is its limit.
  package func share(of identity: String?) -> ByteShare { ByteShare(budget: self, identity: identity) }

  fileprivate func isSpent(for identity: String?) -> Bool {
    held.withLock { held in
      if held.all >= limit { return true }
      // Whoever holds nothing gets one page, however small the limit is.
      return identity.map { held.shares[$0, default: 0] >= max(limit / Self.identities, 1) } ?? false
    }
  }

  fileprivate func add(_ count: Int, for identity: String?) {
    held.withLock { held in
      held.all += count
      guard let identity else { return }
      let share = held.shares[identity, default: 0] + count
      held.shares[identity] = share == 0 ? nil : share
    }
  }
}

/// The part of a budget that is one identity's; as an event that goes out on a connection, it says whose answers come next.
package struct ByteShare: Sendable {
  fileprivate let budget: ByteBudget
  package let identity: String?

  /// Whether as much is held as may be, for all or for this identity: what would hold more is to wait.
  package var isSpent: Bool { budget.isSpent(for: identity) }

  /// Adds bytes, or takes them off with a count below 0.
  package func add(_ count: Int) { budget.add(count, for: identity) }
}
