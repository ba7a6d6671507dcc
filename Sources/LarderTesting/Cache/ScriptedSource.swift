public import Larder
internal import Synchronization

/// A source that answers what a test has written down, and can be held: for caches over it.
///
/// ```swift
/// let source = ScriptedSource<String, Int> { key, _ in .value(key.count) }   // what it answers by itself
/// source.answer("a", .failure(Unreachable()), .success(.value(1)))           // once each, in order, before that
/// source.hold()                                                              // the network is slow from now on
/// await source.waitForCalls(1)
/// source.release()
/// ```
public final class ScriptedSource<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: RemoteSource {
  /// The answer to one call.
  public typealias Answer = Result<Fetched<Value>, any Error>

  /// A call that was made.
  public struct Call: Sendable {
    /// The key asked for.
    public let key: Key
    /// The validator that came with it.
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

  /// Makes a source that answers with this whatever is not written down.
  public init(_ otherwise: @escaping @Sendable (Key, String?) async throws -> Fetched<Value>) { self.otherwise = otherwise }

  // MARK: Script

  /// Writes down what the next calls for a key are answered with, once each.
  public func answer(_ key: Key, _ answers: Answer...) {
    state.withLock { $0.script[key, default: []] += answers }
  }

  /// Stops every call from now on before it is answered, as a slow network would.
  public func hold() { state.withLock { $0.isHolding = true } }

  /// Lets all stopped calls go, and stops no more.
  public func release() {
    let held = state.withLock { state in
      state.isHolding = false
      defer { state.held = [:] }
      return state.held.values
    }
    for continuation in held { continuation.resume(returning: true) }
  }

  // MARK: What happened

  /// The calls that were begun, in their order.
  public var calls: [Call] { state.withLock { $0.calls } }
  /// The number of calls that were begun.
  public var callCount: Int { state.withLock { $0.calls.count } }
  /// The number of calls that were cancelled while they were held.
  public var cancelledCount: Int { state.withLock { $0.cancelled } }
  /// The largest number of calls that ran at the same time.
  public var mostAtOnce: Int { state.withLock { $0.mostRunning } }

  /// Waits until so many calls were begun.
  public func waitForCalls(_ count: Int) async { await wait { $0.calls >= count } }
  /// Waits until so many calls are held.
  public func waitForHeld(_ count: Int) async { await wait { $0.held >= count } }
  /// Waits until so many held calls were cancelled.
  public func waitForCancelled(_ count: Int) async { await wait { $0.cancelled >= count } }

  private func wait(_ isOver: @escaping @Sendable (Counts) -> Bool) async {
    await withCheckedContinuation { continuation in
      let isOverNow = state.withLock { state in
        if isOver(state.counts) { return true }
        state.watchers.append((isOver, continuation))
        return false
      }
      if isOverNow { continuation.resume() }
    }
  }

  // MARK: RemoteSource

  /// Answers by the script.
  ///
  /// - Throws: what the script says, and `CancellationError` when it is cancelled while it is held.
  public func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    let (answer, watchers): (Answer?, [CheckedContinuation<Void, Never>]) = state.withLock { state in
      state.calls.append(Call(key: key, validator: validator))
      state.running += 1
      state.mostRunning = max(state.mostRunning, state.running)
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

  /// Waits while calls are held.
  private func pass() async throws {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    let isFree = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: (isFree: Bool?, watchers: [CheckedContinuation<Void, Never>]) = state.withLock { state in
          guard state.isHolding else { return (true, []) }
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
