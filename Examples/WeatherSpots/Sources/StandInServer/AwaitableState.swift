import Synchronization

/// A value that a test can wait on until a condition holds, instead of sleeping for some time.
public final class AwaitableState<State: Sendable>: Sendable {
  private struct Contents {
    var state: State
    var waiting: [(isReached: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let contents: Mutex<Contents>

  /// Creates a state.
  public init(_ state: State) { contents = Mutex(Contents(state: state)) }

  /// The current value.
  public var value: State { contents.withLock { $0.state } }

  /// Changes the state, and resumes every waiting task whose condition now holds.
  @discardableResult
  public func update<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    let (result, reached) = contents.withLock { contents in
      let result = body(&contents.state)
      let reached = contents.waiting.filter { $0.isReached(contents.state) }
      contents.waiting.removeAll { $0.isReached(contents.state) }
      return (result, reached.map(\.continuation))
    }
    // Resumed outside the lock, because a resumed task may call this object at once.
    for continuation in reached { continuation.resume() }
    return result
  }

  /// Waits until the condition holds, or returns at once if it already does.
  ///
  /// Cancelling the task does not end the wait.
  public func wait(until isReached: @escaping @Sendable (State) -> Bool) async {
    await withCheckedContinuation { continuation in
      // Tested under the same lock that adds the waiter. An update between the two would otherwise be missed.
      let isReachedNow = contents.withLock { contents in
        if isReached(contents.state) { return true }
        contents.waiting.append((isReached, continuation))
        return false
      }
      if isReachedNow { continuation.resume() }
    }
  }
}
