public import Foundation
public import Larder
internal import Synchronization

/// A clock that stands still until a test moves it: for everything that takes a `WallClock`.
///
/// ```swift
/// let clock = ManualClock()
/// let cache = CachedRepository(storage: storage, freshness: freshness, clock: clock, source: source)
/// clock.advance(by: .hours(2))            // time passes
/// clock.setWall(to: .distantFuture)       // the user sets the clock; no time passes
/// ```
///
/// ``advance(by:)`` wakes the tasks whose sleep is over, in the order in which their sleeps end. A test that advances before a task sleeps
/// would wake nothing, so wait for the task first:
///
/// ```swift
/// await clock.waitForSleepers()           // the retry waits
/// clock.advance(by: .seconds(1))          // and goes on
/// ```
///
/// Cost: one lock a call; advancing looks at every sleeper.
///
/// ## Topics
///
/// ### Making a clock
/// - ``init(now:)``
///
/// ### Moving time
/// - ``advance(by:)``
/// - ``setWall(to:)``
/// - ``setWall(by:)``
///
/// ### Waiting for tasks
/// - ``waitForSleepers(_:)``
/// - ``sleeperCount``
///
/// ### Reading the clock
/// - ``now``
/// - ``uptime``
/// - ``sleep(for:)``
public final class ManualClock: WallClock {
  private struct Sleeper: Sendable {
    let until: Duration
    let continuation: CheckedContinuation<Bool, Never>
  }

  private struct State: Sendable {
    var now: Date
    var uptime = Duration.zero
    var sleepers: [UInt64: Sleeper] = [:]
    var last: UInt64 = 0
    var watchers: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state: Mutex<State>

  /// Makes a clock that shows 1 January 2026, 00:00 UTC, unless told otherwise.
  public init(now: Date = Date(timeIntervalSince1970: 1_767_225_600)) { state = Mutex(State(now: now)) }

  /// The date, as the test has set it.
  public var now: Date { state.withLock { $0.now } }
  /// The time that the test has let pass.
  public var uptime: Duration { state.withLock { $0.uptime } }
  /// The number of tasks that sleep.
  public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

  /// Lets time pass on both clocks, and wakes the tasks that have slept long enough.
  public func advance(by duration: Duration) {
    let woken = state.withLock { state in
      state.uptime += duration
      state.now += Double(duration.components.seconds) + Double(duration.components.attoseconds) * 1e-18
      let uptime = state.uptime
      let due = state.sleepers.filter { $0.value.until <= uptime }
      for id in due.keys { state.sleepers[id] = nil }
      return due.sorted { ($0.value.until, $0.key) < ($1.value.until, $1.key) }.map(\.value.continuation)
    }
    for continuation in woken { continuation.resume(returning: true) }
  }

  /// Sets the wall clock, as a user or the network does; no time passes.
  public func setWall(to date: Date) { state.withLock { $0.now = date } }

  /// Sets the wall clock ahead, or back by a negative number of seconds; no time passes.
  public func setWall(by seconds: TimeInterval) { state.withLock { $0.now += seconds } }

  /// Sleeps until the test has let so much time pass.
  ///
  /// - Throws: `CancellationError`.
  public func sleep(for duration: Duration) async throws {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    let isOver = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: (isOver: Bool?, watchers: [CheckedContinuation<Void, Never>]) = state.withLock { state in
          if Task.isCancelled { return (false, []) }
          if duration <= .zero { return (true, []) }
          state.sleepers[id] = Sleeper(until: state.uptime + duration, continuation: continuation)
          return (nil, Self.takeWatchers(&state))
        }
        if let isOver = answer.isOver { continuation.resume(returning: isOver) }
        for watcher in answer.watchers { watcher.resume() }
      }
    } onCancel: {
      state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume(returning: false)
    }
    guard isOver else { throw CancellationError() }
  }

  /// Waits until at least some number of tasks sleep: one, unless given.
  public func waitForSleepers(_ count: Int = 1) async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if state.sleepers.count >= count { return true }
        state.watchers.append((count, continuation))
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  private static func takeWatchers(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
    let count = state.sleepers.count
    let ready = state.watchers.filter { $0.count <= count }.map(\.continuation)
    state.watchers.removeAll { $0.count <= count }
    return ready
  }
}
