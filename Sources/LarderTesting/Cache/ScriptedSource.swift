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
    /// The calls that are held; each is told whether it may go on, rather than that it was cancelled.
    var held: [ObjectIdentifier: OneShot<Bool>] = [:]
  }

  private let state = Mutex(State())
  /// Raised when a call is begun, held or cancelled.
  private let changes = Signal()
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
    for call in held { call.resolve(true) }
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

  /// Waits until so many calls were begun, or the task is cancelled.
  public func waitForCalls(_ count: Int) async { await changes.wait { callCount >= count } }
  /// Waits until so many calls are held, or the task is cancelled.
  public func waitForHeld(_ count: Int) async { await changes.wait { state.withLock { $0.held.count } >= count } }
  /// Waits until so many held calls were cancelled, or the task is cancelled.
  public func waitForCancelled(_ count: Int) async { await changes.wait { cancelledCount >= count } }

  // MARK: RemoteSource

  /// Answers by the script.
  ///
  /// - Throws: what the script says, and `CancellationError` when it is cancelled while it is held.
  public func fetch(_ key: Key, validator: String?) async throws -> Fetched<Value> {
    let answer: Answer? = state.withLock { state in
      state.calls.append(Call(key: key, validator: validator))
      state.running += 1
      state.mostRunning = max(state.mostRunning, state.running)
      return state.script[key]?.isEmpty == false ? state.script[key]?.removeFirst() : nil
    }
    changes.raise()
    defer { state.withLock { $0.running -= 1 } }
    try await pass()
    guard let answer else { return try await otherwise(key, validator) }
    return try answer.get()
  }

  /// Waits while calls are held.
  private func pass() async throws {
    let call = OneShot<Bool>()
    let isHeld = state.withLock { state in
      if state.isHolding { state.held[ObjectIdentifier(call)] = call }
      return state.isHolding
    }
    guard isHeld else { return }
    changes.raise()
    let isFree = await withTaskCancellationHandler {
      await call.value()
    } onCancel: {
      state.withLock { state in
        if state.held.removeValue(forKey: ObjectIdentifier(call)) != nil { state.cancelled += 1 }
      }
      call.resolve(false)
      changes.raise()
    }
    guard isFree else { throw CancellationError() }
  }
}
