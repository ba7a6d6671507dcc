internal import Synchronization

/// The number of open connections, and the most that there may be.
package final class ConnectionCount: Sendable {
  private let open = Mutex(0)
  private let most: Int

  package init(most: Int) { self.most = most }

  /// The number of open connections.
  package var count: Int { open.withLock { $0 } }

  /// Counts a connection, and returns whether there was room for it.
  package func enter() -> Bool {
    open.withLock { open in
      guard open < most else { return false }
      open += 1
      return true
    }
  }

  /// Forgets a connection that had room.
  package func leave() { open.withLock { $0 -= 1 } }
}
