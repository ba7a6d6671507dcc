internal import DequeModule
internal import Synchronization

/// A number of permits, given out in the order in which tasks ask for them.
///
/// With one permit it is a lock that may be held across suspensions.
package final class AsyncSemaphore: Sendable {
  private struct State: Sendable {
    var free: Int
    /// The numbers of the tasks that wait, in order, and of some that were cancelled.
    var order: Deque<UInt64> = []
    var waiting: [UInt64: CheckedContinuation<Bool, Never>] = [:]
    var last: UInt64 = 0

    mutating func nextNumber() -> UInt64 {
      last += 1
      return last
    }

    /// Takes out a task that was cancelled.
    ///
    /// Its number stays in the order until it is met there, or such numbers outweigh the others.
    mutating func remove(_ number: UInt64) -> CheckedContinuation<Bool, Never>? {
      guard let continuation = waiting.removeValue(forKey: number) else { return nil }
      if order.count > 2 * waiting.count + 16 { order.removeAll { waiting[$0] == nil } }
      return continuation
    }
  }

  private let state: Mutex<State>

  package init(_ permits: Int) { state = Mutex(State(free: permits)) }

  /// The number of permits that are free.
  package var freeCount: Int { state.withLock { $0.free } }
  /// The number of tasks that wait.
  package var waitingCount: Int { state.withLock { $0.waiting.count } }
  /// The length of the queue, cancelled tasks included: for tests.
  package var queueLength: Int { state.withLock { $0.order.count } }

  /// Takes a permit if one is free.
  package func tryAcquire() -> Bool {
    state.withLock { state in
      guard state.free > 0 else { return false }
      state.free -= 1
      return true
    }
  }

  /// Takes a permit as soon as one is free, also in a task that is cancelled.
  package nonisolated(nonsending) func acquire() async {
    _ = await permit(number: nil)
  }

  /// Takes a permit as soon as one is free; a task that is cancelled while it waits leaves the queue at once.
  /// - Returns: Whether the caller has a permit.
  package nonisolated(nonsending) func acquireUnlessCancelled() async -> Bool {
    let number = state.withLock { $0.nextNumber() }
    return await withTaskCancellationHandler {
      await permit(number: number)
    } onCancel: {
      state.withLock { $0.remove(number) }?.resume(returning: false)
    }
  }

  /// Gives a permit back: to the task that has waited longest, if any.
  package func release() {
    let next: CheckedContinuation<Bool, Never>? = state.withLock { state in
      while let number = state.order.popFirst() {
        if let continuation = state.waiting.removeValue(forKey: number) { return continuation }
      }
      state.free += 1
      return nil
    }
    next?.resume(returning: true)
  }

  /// - Parameter number: The number under which the wait can be cancelled; `nil` when it cannot.
  private nonisolated(nonsending) func permit(number: UInt64?) async -> Bool {
    await withCheckedContinuation { continuation in
      // A cancellation before this point is seen here; a later one finds the continuation.
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
      if let answer { continuation.resume(returning: answer) }
    }
  }
}
