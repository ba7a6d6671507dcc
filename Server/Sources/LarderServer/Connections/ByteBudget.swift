internal import Synchronization

// Connections/ bounds what single connections and all of them together may hold: time, memory, number. Invariant: no client can keep
// memory or a connection by being slow. Called by HTTP.

/// The bytes of requests and answers that are held for clients, all together.
final class ByteBudget: Sendable {
  private let held = Mutex(0)
  private let limit: Int

  init(_ limit: Int) { self.limit = limit }

  /// Whether as much is held as may be: what would hold more is to wait.
  var isSpent: Bool { held.withLock { $0 >= limit } }
  /// The bytes that are held.
  var bytes: Int { held.withLock { $0 } }

  /// Adds bytes, or takes them off with a count below 0.
  func add(_ count: Int) { held.withLock { $0 += count } }
}
