internal import DequeModule
internal import Synchronization

/// A number of permits: at most so many operations run at a time, the others wait in the order in which they came.
///
/// Share one among everything that talks to one host. A task that is cancelled while it waits leaves the queue at once.
public final class ConcurrencyLimit: Sendable {
  private struct State {
    var free: Int
    var order: Deque<UInt64> = []
    var waiting: [UInt64: CheckedContinuation<Bool, Never>] = [:]
    var last: UInt64 = 0

    /// Takes a waiter out; numbers of those who have left stay in the order until they are met there, or outnumber those who wait.
    mutating func leave(_ id: UInt64) -> CheckedContinuation<Bool, Never>? {
      guard let continuation = waiting.removeValue(forKey: id) else { return nil }
      if order.count > 2 * waiting.count + 16 { order.removeAll { waiting[$0] == nil } }
      return continuation
    }
  }

  /// How many operations may run at a time.
  public let limit: Int
  private let state: Mutex<State>

  /// Makes a limit of at least 1.
  public init(_ limit: Int) {
    self.limit = max(limit, 1)
    state = Mutex(State(free: max(limit, 1)))
  }

  /// Runs an operation when a permit is free, and gives it back however the operation ends.
  ///
  /// - Throws: `CancellationError` when the task is cancelled while it waits; else what the operation throws.
  public func withPermit<Result>(_ operation: () async throws -> Result) async throws -> Result {
    try await acquire()
    defer { release() }
    return try await operation()
  }

  /// How many operations wait.
  public var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// How many numbers are remembered for those who wait, and of those who have left.
  var orderCount: Int { state.withLock { $0.order.count } }

  func acquire() async throws {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    let isMine = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // A cancellation before this point is seen here; a later one finds the continuation.
        let answer: Bool? = state.withLock { state in
          if Task.isCancelled { return false }
          if state.free > 0 {
            state.free -= 1
            return true
          }
          state.order.append(id)
          state.waiting[id] = continuation
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      state.withLock { $0.leave(id) }?.resume(returning: false)
    }
    guard isMine else { throw CancellationError() }
  }

  func release() {
    let next: CheckedContinuation<Bool, Never>? = state.withLock { state in
      while let id = state.order.popFirst() {
        if let continuation = state.waiting.removeValue(forKey: id) { return continuation }
      }
      state.free += 1
      return nil
    }
    next?.resume(returning: true)
  }
}
