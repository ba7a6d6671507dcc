internal import Synchronization

/// Counter of open connections with a maximum.
package final class ConnectionCount: Sendable {
  private let open = Mutex(0)
  private let most: Int

  package init(most: Int) { self.most = most }

  /// Number of open connections.
  package var count: Int { open.withLock { $0 } }

  /// Counts a connection and returns true, or returns false if the maximum is reached.
  package func enter() -> Bool {
    open.withLock { open in
      guard open < most else { return false }
      open += 1
      return true
    }
  }

  /// Removes a connection that `enter()` has counted.
  package func leave() { open.withLock { $0 -= 1 } }
}
