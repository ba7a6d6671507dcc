internal import DequeModule
internal import Synchronization

/// A counting semaphore for tasks, which gives its permits out in the order of the requests.
///
/// With one permit it is a lock that may be held across suspensions.
package final class AsyncSemaphore: Sendable {
  private struct State: Sendable {
    var free: Int
    /// Numbers of the waiting tasks in order, and of some that were cancelled.
    var order: Deque<UInt64> = []
    var waiting: [UInt64: CheckedContinuation<Bool, Never>] = [:]
    var last: UInt64 = 0

    mutating func nextNumber() -> UInt64 {
      last += 1
      return last
    }

    /// Removes a task that was cancelled, and returns its continuation.
    ///
    /// Its number stays in the order until a release reaches it, or until such numbers outweigh the others.
    mutating func remove(_ number: UInt64) -> CheckedContinuation<Bool, Never>? {
      guard let continuation = waiting.removeValue(forKey: number) else { return nil }
      // Tasks that come and are cancelled again and again must not let the order grow without bound.
      if order.count > 2 * waiting.count + 16 { order.removeAll { waiting[$0] == nil } }
      return continuation
    }
  }

  private let state: Mutex<State>

  package init(_ permits: Int) { state = Mutex(State(free: permits)) }

  /// Number of permits that are free.
  package var freeCount: Int { state.withLock { $0.free } }
  /// Number of tasks that wait.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }
  /// Length of the queue with the tasks that were cancelled, for tests.
  package var queueLength: Int { state.withLock { $0.order.count } }

  /// Takes a permit if one is free, and returns whether it has.
  package func tryAcquire() -> Bool {
    state.withLock { state in
      guard state.free > 0 else { return false }
      state.free -= 1
      return true
    }
  }

  /// Takes a permit as soon as one is free, even in a task that is cancelled.
  package nonisolated(nonsending) func acquire() async {
    _ = await permit(number: nil)
  }

  /// Takes a permit as soon as one is free, unless the task is cancelled while it waits.
  ///
  /// A cancelled task leaves the queue at once.
  /// - Returns: Whether the caller has a permit.
  package nonisolated(nonsending) func acquireUnlessCancelled() async -> Bool {
    // Taken before the wait, so that the cancellation handler can name the waiting task.
    let number = state.withLock { $0.nextNumber() }
    return await withTaskCancellationHandler {
      await permit(number: number)
    } onCancel: {
      state.withLock { $0.remove(number) }?.resume(returning: false)
    }
  }

  /// Gives a permit back, to the task that has waited longest if one waits.
  package func release() {
    let next: CheckedContinuation<Bool, Never>? = state.withLock { state in
      // Numbers of cancelled tasks are still in the order and are skipped.
      while let number = state.order.popFirst() {
        // The permit is passed on and not freed, so that no task that came later takes it.
        if let continuation = state.waiting.removeValue(forKey: number) { return continuation }
      }
      state.free += 1
      return nil
    }
    next?.resume(returning: true)
  }

  /// Takes a permit as soon as one is free, and returns whether the caller has it.
  /// - Parameter number: The number under which the wait can be cancelled, or `nil` if it cannot.
  private nonisolated(nonsending) func permit(number: UInt64?) async -> Bool {
    await withCheckedContinuation { continuation in
      // A cancellation before this point is seen here. A later one finds the continuation.
      let answer: Bool? = state.withLock { state in
        if number != nil, Task.isCancelled { return false }
        if state.free > 0 {
          state.free -= 1
          return true
        }
        let number = number ?? state.nextNumber()
        state.order.append(number)
        state.waiting[number] = continuation
        return nil
      }
      // Resumed without the lock, because a resumption calls the executor of the task.
      if let answer { continuation.resume(returning: answer) }
    }
  }
}
