// Concurrency/ holds the types by which tasks wait for each other, and the functions that spread work over the cores.
// Invariant: no continuation is resumed twice or under a lock. No function blocks the cooperative pool unless its name says so.
// Called by the code of every folder of the package.

internal import Synchronization

/// A value that is set once, and awaited by any number of tasks.
///
/// The first call of ``resolve(_:)`` sets the value, and every later call of ``resolve(_:)`` changes nothing and returns `false`. The
/// cancellation of a task does not end its wait for the value. To end the wait of a cancelled task, call ``resolve(_:)`` in a cancellation
/// handler. If the handler's call of ``resolve(_:)`` returns `true`, the cancellation came before any other value.
package final class OneShot<Value: Sendable>: Sendable {
  private enum State: Sendable {
    case awaited([CheckedContinuation<Value, Never>])
    case resolved(Value)
  }

  private let state = Mutex(State.awaited([]))

  package init() {}

  /// Whether a call of ``resolve(_:)`` has set the value.
  package var isResolved: Bool { state.withLock { if case .resolved = $0 { true } else { false } } }

  /// Sets the value and resumes the tasks that await it.
  ///
  /// - Returns: True if the call of `resolve` has set the value, or false if an earlier call had set a value.
  @discardableResult package func resolve(_ value: Value) -> Bool {
    let waiters: [CheckedContinuation<Value, Never>]? = state.withLock { state in
      guard case .awaited(let waiters) = state else { return nil }
      state = .resolved(value)
      return waiters
    }
    // The continuations are resumed without the lock, because resuming one calls the executor of its task, which is foreign code.
    for waiter in waiters ?? [] { waiter.resume(returning: value) }
    return waiters != nil
  }

  /// Waits until ``resolve(_:)`` has set the value, and returns the value.
  package nonisolated(nonsending) func value() async -> Value {
    await withCheckedContinuation { continuation in
      // The state is checked and the waiter is added under one lock, so that `resolve` cannot set the value between the check and the
      // insertion.
      let value: Value? = state.withLock { state in
        switch state {
        case .resolved(let value): return value
        case .awaited(let waiters):
          state = .awaited(waiters + [continuation])
          return nil
        }
      }
      if let value { continuation.resume(returning: value) }
    }
  }
}

/// A signal that wakes all tasks that wait for some condition to change.
///
/// The signal does not store the condition, which the caller protects with a lock of its own. In a loop, a task reads ``moment``, checks
/// the condition, and waits for a change after that moment. A change between the check and the wait makes the wait return at once, so the
/// task does not miss the change:
///
/// ```swift
/// while !Task.isCancelled {
///   let moment = signal.moment
///   if let item = takeItem() { return item }
///   await signal.wait(after: moment)
/// }
/// ```
package final class Signal: Sendable {
  /// A point in time between two calls of ``raise()``, given as the number of calls of ``raise()`` so far.
  package struct Moment: Hashable, Sendable {
    fileprivate let number: UInt64
  }

  private struct State: Sendable {
    var moment = Moment(number: 0)
    var isFinished = false
    var waiters: [CheckedContinuation<Void, Never>] = []

    mutating func removeWaiters() -> [CheckedContinuation<Void, Never>] {
      // The continuations are read and removed under one lock, so that no second call resumes the same continuation.
      defer { waiters = [] }
      return waiters
    }
  }

  private let state = Mutex(State())

  package init() {}

  /// The number of calls of ``raise()`` so far, which a task must read before it checks its condition.
  package var moment: Moment { state.withLock { $0.moment } }

  /// Whether ``finish()`` was called.
  package var isFinished: Bool { state.withLock { $0.isFinished } }

  /// Whether a task waits for the signal, for tests.
  package var isAwaited: Bool { state.withLock { !$0.waiters.isEmpty } }

  /// Wakes all tasks that wait for the signal.
  ///
  /// Call `raise()` after the condition has changed, so that the woken tasks find the change.
  package func raise() {
    wake { state in state.moment = Moment(number: state.moment.number + 1) }
  }

  /// Wakes all tasks that wait for the signal, and makes every later ``wait(after:)`` return at once.
  package func finish() {
    wake { $0.isFinished = true }
  }

  /// Returns once the signal was raised after `moment` or is finished, or once the task is cancelled.
  ///
  /// `wait(after:)` also returns early if another waiting task is cancelled. Check the condition again after every return of
  /// `wait(after:)`, because the condition may not have changed.
  package nonisolated(nonsending) func wait(after moment: Moment) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // The check of `isCancelled` and the insertion into `waiters` run under one lock, so that no cancellation is missed. A cancellation
        // before the check makes `isCancelled` true, and a later cancellation finds the continuation in `waiters`.
        let isOver = state.withLock { state in
          if state.moment != moment || state.isFinished || Task.isCancelled { return true }
          state.waiters.append(continuation)
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      // Waiters have no identity, so a cancellation wakes all of them. Each task that was not cancelled checks its condition and waits
      // again.
      wake { _ in }
    }
  }

  private func wake(_ change: (inout State) -> Void) {
    let waiters = state.withLock { state in
      change(&state)
      return state.removeWaiters()
    }
    // The continuations are resumed without the lock, because resuming one calls the executor of its task, which is foreign code.
    for waiter in waiters { waiter.resume() }
  }
}

/// A reference that is set at most once and read without a lock.
///
/// `LazyReference` replaces `AtomicLazyReference` of the standard library. On Linux `AtomicLazyReference` is generic code that is not
/// specialised for its use, and one read of it took longer than the rest of a record's look-up.
struct LazyReference<Instance: AnyObject & Sendable>: ~Copyable, Sendable {
  /// Address of the object, which the `LazyReference` owns, or 0 before an object was set.
  private let address = Atomic<UInt>(0)

  init() {}

  deinit { Self.unmanaged(address.load(ordering: .acquiring))?.release() }

  /// Whether the reference holds an object.
  var isSet: Bool { address.load(ordering: .acquiring) != 0 }

  /// Returns the object, or `nil` before an object was set.
  func load() -> Instance? { unretained?.takeUnretainedValue() }

  /// The object without an increment of its reference count, or `nil` before an object was set.
  ///
  /// The object lives as long as the `LazyReference`.
  var unretained: Unmanaged<Instance>? { Self.unmanaged(address.load(ordering: .acquiring)) }

  /// Sets the object unless an object was set before.
  ///
  /// - Returns: The object that was set first: `instance`, or an object that was set before the call.
  @discardableResult func storeIfNil(_ instance: Instance) -> Instance {
    let new = Unmanaged.passRetained(instance)
    // The releasing order also publishes the contents of the object to every thread that reads its address.
    let (isExchanged, old) = address.compareExchange(
      expected: 0, desired: UInt(bitPattern: new.toOpaque()), ordering: .acquiringAndReleasing)
    guard !isExchanged, let first = Self.unmanaged(old) else { return instance }
    // Another thread has set an object first, so the reference that was retained to the new object is released again.
    new.release()
    return first.takeUnretainedValue()
  }

  private static func unmanaged(_ address: UInt) -> Unmanaged<Instance>? {
    UnsafeRawPointer(bitPattern: address).map(Unmanaged.fromOpaque)
  }
}
