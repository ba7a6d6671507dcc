internal import Larder
internal import Synchronization

/// A state of a scope with the bytes that it is stored as: those that are met again need not be read again.
final class NewestState: Sendable {
  private let known = Mutex<(stored: StoredValue, state: ScopeState)?>(nil)

  /// Returns a state that is stored.
  ///
  /// Cost: comparing its bytes, where they are the newest.
  /// - Throws: `.corrupted` for what is none.
  func state(of stored: StoredValue) throws(RepositoryError) -> ScopeState {
    if let known = known.withLock({ $0 }), known.stored == stored { return known.state }
    let state = try ScopeState(stored)
    known.withLock { $0 = (stored, state) }
    return state
  }

  /// Returns a state as it is stored.
  func stored(_ state: ScopeState) -> StoredValue {
    let stored = state.stored
    known.withLock { $0 = (stored, state) }
    return stored
  }
}
