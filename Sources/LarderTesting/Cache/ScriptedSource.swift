public import Larder
internal import Synchronization

/// Remote source whose answers a test scripts, and whose calls a test can hold, for tests of caches.
///
/// ```swift
/// let source = ScriptedSource<String, Int> { key, _ in .value(key.count) }   // the answer to every call without a script
/// source.answer("a", .failure(Unreachable()), .success(.value(1)))           // the next two answers for "a"
/// source.hold()                                                              // the network is slow from now on
/// await source.waitForCalls(1)
/// source.release()
/// ```
public final class ScriptedSource<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  /// Answer to one call: a fetched value or an error.
  public typealias Answer = Result<Fetched<Value>, any Error>

  /// Key and validator of a call to the source.
  public struct Call: Sendable {
    /// Key that the cache has requested.
    public let key: Key
    /// Validator that the cache has sent, or `nil` if it had none.
    public let validator: String?
  }

  private struct State: Sendable {
    var script: [Key: [Answer]] = [:]
    var calls: [Call] = []
    var running = 0
    var mostRunning = 0
    var cancelled = 0
    var isHolding = false
    var held: [UInt64: CheckedContinuation<Bool, Never>] = [:]
    var last: UInt64 = 0
    var watchers: [(isOver: @Sendable (Counts) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []

    var counts: Counts { Counts(calls: calls.count, held: held.count, cancelled: cancelled) }

    /// Removes and returns the continuations of waiting tests whose condition holds.
    mutating func takeWatchers() -> [CheckedContinuation<Void, Never>] {
      let counts = counts
      defer { watchers.removeAll { $0.isOver(counts) } }
      return watchers.filter { $0.isOver(counts) }.map(\.continuation)
    }
  }

  private struct Counts: Sendable {
    let calls: Int
    let held: Int
    let cancelled: Int
  }

  private let state = Mutex(State())
  private let otherwise: @Sendable (Key, String?) async throws -> Fetched<Value>

  /// Makes a source that calls a closure for every call without a scripted answer.
  public init(_ otherwise: @escaping @Sendable (Key, String?) async throws -> Fetched<Value>) { self.otherwise = otherwise }

  // MARK: Script

  /// Appends answers for the next calls with a key, one for each call.
  public func answer(_ key: Key, _ answers: Answer...) {
    state.withLock { $0.script[key, default: []] += answers }
  }

  /// Holds every later call before its answer until ``release()``, as a slow network would.
  public func hold() { state.withLock { $0.isHolding = true } }

  /// Lets all held calls continue, and holds no later calls.
  public func release() {
    let held = state.withLock { state in
      state.isHolding = false
      defer { state.held = [:] }
      return state.held.values
    }
    // The calls are resumed without the lock, because a resumption calls the task's executor, which may call this source.
    for continuation in held { continuation.resume(returning: true) }
  }

  // MARK: Record of calls

  /// All calls, in the order in which they began.
  public var calls: [Call] { state.withLock { $0.calls } }
  /// Number of calls that have begun.
  public var callCount: Int { state.withLock { $0.calls.count } }
  /// Number of calls that were cancelled while they were held.
  public var cancelledCount: Int { state.withLock { $0.cancelled } }
  /// Largest number of calls that ran at the same time.
  public var mostAtOnce: Int { state.withLock { $0.mostRunning } }

  /// Waits until at least `count` calls have begun.
  public func waitForCalls(_ count: Int) async { await wait { $0.calls >= count } }
  /// Waits until at least `count` calls are held.
  public func waitForHeld(_ count: Int) async { await wait { $0.held >= count } }
  /// Waits until at least `count` held calls were cancelled.
  public func waitForCancelled(_ count: Int) async { await wait { $0.cancelled >= count } }

  private func wait(_ isOver: @escaping @Sendable (Counts) -> Bool) async {
    await withCheckedContinuation { continuation in
      // The condition is checked and the waiting test is added to `watchers` under one lock. A call that began between the check and the
      // addition to `watchers` would not wake the test, and the test could wait for ever.
      let isOverNow = state.withLock { state in
        if isOver(state.counts) { return true }
        state.watchers.append((isOver, continuation))
        return false
      }
      if isOverNow { continuation.resume() }
    }
  }

  // MARK: RemoteSource

  /// Returns or throws the next scripted answer for the key, or calls the closure of the source if there is none.
  ///
  /// - Throws: The scripted error, or `CancellationError` if the call is cancelled while it is held.
  public func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    let (answer, watchers): (Answer?, [CheckedContinuation<Void, Never>]) = state.withLock { state in
      state.calls.append(Call(key: key, validator: validator))
      state.running += 1
      state.mostRunning = max(state.mostRunning, state.running)
      // The scripted answer is taken when the call begins, and not when a held call continues. Held calls resume in any order, so two calls
      // with one key could otherwise get each other's answers.
      let answer = state.script[key]?.first
      if answer != nil { state.script[key]?.removeFirst() }
      return (answer, state.takeWatchers())
    }
    for watcher in watchers { watcher.resume() }
    defer { state.withLock { $0.running -= 1 } }
    try await pass()
    guard let answer else { return try await otherwise(key, validator) }
    return try answer.get()
  }

  /// Waits while the source holds its calls, and throws `CancellationError` if the task is cancelled meanwhile.
  private func pass() async throws {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    let isFree = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: (isFree: Bool?, watchers: [CheckedContinuation<Void, Never>]) = state.withLock { state in
          guard state.isHolding else { return (true, []) }
          // A cancellation that came before the continuation is stored has found no continuation to resume, so the call ends itself.
          if Task.isCancelled {
            state.cancelled += 1
            return (false, state.takeWatchers())
          }
          state.held[id] = continuation
          return (nil, state.takeWatchers())
        }
        if let isFree = answer.isFree { continuation.resume(returning: isFree) }
        for watcher in answer.watchers { watcher.resume() }
      }
    } onCancel: {
      let (continuation, watchers) = state.withLock { state -> (CheckedContinuation<Bool, Never>?, [CheckedContinuation<Void, Never>]) in
        // If there is no continuation, the call was released already, or it is not held yet and reads `Task.isCancelled` itself.
        guard let continuation = state.held.removeValue(forKey: id) else { return (nil, []) }
        state.cancelled += 1
        return (continuation, state.takeWatchers())
      }
      continuation?.resume(returning: false)
      for watcher in watchers { watcher.resume() }
    }
    guard isFree else { throw CancellationError() }
  }
}
