import Synchronization

/// A state that others can wait on, so that tests wait for what happens and not for time to pass.
public final class AwaitableState<State: Sendable>: Sendable {
  private struct Contents {
    var state: State
    var waiting: [(isReached: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let contents: Mutex<Contents>

  /// Makes a state.
  public init(_ state: State) { contents = Mutex(Contents(state: state)) }

  /// The state now.
  public var value: State { contents.withLock { $0.state } }

  /// Changes the state, and wakes those who have waited for what it is now.
  @discardableResult
  public func update<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    let (result, reached) = contents.withLock { contents in
      let result = body(&contents.state)
      let reached = contents.waiting.filter { $0.isReached(contents.state) }
      contents.waiting.removeAll { $0.isReached(contents.state) }
      return (result, reached.map(\.continuation))
    }
    for continuation in reached { continuation.resume() }
    return result
  }

  /// Waits until the condition holds.
  public func wait(until isReached: @escaping @Sendable (State) -> Bool) async {
    await withCheckedContinuation { continuation in
      let isReachedNow = contents.withLock { contents in
        if isReached(contents.state) { return true }
        contents.waiting.append((isReached, continuation))
        return false
      }
      if isReachedNow { continuation.resume() }
    }
  }
}
