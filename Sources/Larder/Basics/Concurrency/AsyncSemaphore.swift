internal import DequeModule
internal import Synchronization

/// A counting semaphore for tasks, which gives its permits to waiting tasks in the order of their requests.
///
/// With one permit the semaphore is a lock that a task may hold across suspensions.
package final class AsyncSemaphore: Sendable {
  private struct State: Sendable {
    var free: Int
    /// Numbers of the waiting tasks in the order of their requests, and of some cancelled tasks whose numbers are not removed yet.
    var order: Deque<UInt64> = []
    var waiting: [UInt64: CheckedContinuation<Bool, Never>] = [:]
    var last: UInt64 = 0

    mutating func nextNumber() -> UInt64 {
      last += 1
      return last
    }

    /// Removes a task that was cancelled, and returns its continuation.
    ///
    /// The number of the cancelled task stays in `order` until `release` reaches it. If w tasks still wait and `order` has more than 2 × w
    /// + 16 numbers, `remove` also removes the numbers of all cancelled tasks from `order`.
    mutating func remove(_ number: UInt64) -> CheckedContinuation<Bool, Never>? {
      guard let continuation = waiting.removeValue(forKey: number) else { return nil }
      // Without the removal of old numbers, `order` would grow without bound if tasks wait and are cancelled again and again and no permit
      // is released.
      if order.count > 2 * waiting.count + 16 { order.removeAll { waiting[$0] == nil } }
      return continuation
    }
  }

  private let state: Mutex<State>

  package init(_ permits: Int) { state = Mutex(State(free: permits)) }

  /// Number of permits that no task has taken.
  package var freeCount: Int { state.withLock { $0.free } }
  /// Number of tasks that wait for a permit.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }
  /// Length of the queue of waiting tasks, including cancelled tasks whose numbers are not removed yet, for tests.
  package var queueLength: Int { state.withLock { $0.order.count } }

  /// Takes a permit without waiting, and returns false if no permit is free.
  package func tryAcquire() -> Bool {
    state.withLock { state in
      guard state.free > 0 else { return false }
      state.free -= 1
      return true
    }
  }

  /// Waits until a permit is free and takes it.
  ///
  /// A cancellation of the task does not end its wait for a permit.
  package nonisolated(nonsending) func acquire() async {
    _ = await permit(number: nil)
  }

  /// Waits until a permit is free and takes it, or takes no permit if the task is cancelled before or during the wait.
  ///
  /// A cancelled task stops waiting at once.
  ///
  /// - Returns: True if the caller has a permit, false if it was cancelled.
  package nonisolated(nonsending) func acquireUnlessCancelled() async -> Bool {
    // The task's number is made before the wait, because the cancellation handler needs the number to remove the waiting task.
    let number = state.withLock { $0.nextNumber() }
    return await withTaskCancellationHandler {
      await permit(number: number)
    } onCancel: {
      state.withLock { $0.remove(number) }?.resume(returning: false)
    }
  }

  /// Gives a permit back, and passes it to the task that has waited longest, if any task waits.
  package func release() {
    let next: CheckedContinuation<Bool, Never>? = state.withLock { state in
      // A cancelled task has no entry in `waiting`, so its number in `order` is skipped.
      while let number = state.order.popFirst() {
        // The permit goes to the waiting task without an increment of `free`, so that no task that came later can take the permit first.
        if let continuation = state.waiting.removeValue(forKey: number) { return continuation }
      }
      state.free += 1
      return nil
    }
    next?.resume(returning: true)
  }

  /// Takes a permit as soon as one is free, and returns false if a cancellation ended the wait without a permit.
  ///
  /// - Parameter number: The number by which a cancellation finds the waiting task, or `nil` if the wait cannot be cancelled.
  private nonisolated(nonsending) func permit(number: UInt64?) async -> Bool {
    await withCheckedContinuation { continuation in
      // A cancellation before the check of `isCancelled` makes `isCancelled` true. A cancellation after the check finds the continuation in
      // `waiting`, if the task has to wait. The check and the insertion into `waiting` run under one lock, so that no cancellation is
      // missed.
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
      // The continuation is resumed after the lock is released, because resuming calls the executor of the waiting task, which is foreign
      // code.
      if let answer { continuation.resume(returning: answer) }
    }
  }
}
