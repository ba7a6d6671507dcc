internal import Synchronization

/// Yields until the condition holds; throws when the test runs out of time.
package func until(_ condition: () -> Bool) async throws {
  while !condition() {
    try Task.checkCancellation()
    await Task.yield()
  }
}

/// A switch that tasks can throw and look at.
package final class Flag: Sendable {
  private let state = Mutex(false)

  package init() {}

  package var isSet: Bool { state.withLock { $0 } }
  package func set() { state.withLock { $0 = true } }
}
