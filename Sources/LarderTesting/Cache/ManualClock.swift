public import Foundation
public import Larder
internal import Synchronization

/// Clock that moves only when a test moves it, for every type that takes a `WallClock`.
///
/// ```swift
/// let clock = ManualClock()
/// let cache = CachedRepository(storage: storage, freshness: freshness, clock: clock, source: source)
/// clock.advance(by: .hours(2))            // time passes
/// clock.setWall(to: .distantFuture)       // the user sets the clock, and no time passes
/// ```
///
/// ``advance(by:)`` wakes the sleeping tasks whose time has passed, in the order in which their sleeps end. An advance of the clock does
/// not wake a task that begins to sleep later. Before you advance the clock, wait until the task sleeps:
///
/// ```swift
/// await clock.waitForSleepers()           // the retry waits
/// clock.advance(by: .seconds(1))          // and goes on
/// ```
///
/// Cost: one lock for each call. ``advance(by:)`` is linear in the number of sleeping tasks.
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

  /// Makes a clock that shows a date: 1 January 2026, 00:00 UTC, by default.
  public init(now: Date = Date(timeIntervalSince1970: 1_767_225_600)) { state = Mutex(State(now: now)) }

  /// Date that the wall clock shows.
  public var now: Date { state.withLock { $0.now } }
  /// Sum of all durations by which the test has advanced the clock.
  public var uptime: Duration { state.withLock { $0.uptime } }
  /// Number of tasks that sleep on this clock.
  public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

  /// Advances the wall clock and the uptime, and wakes the tasks whose sleep is over.
  public func advance(by duration: Duration) {
    let woken = state.withLock { state in
      state.uptime += duration
      state.now += Double(duration.components.seconds) + Double(duration.components.attoseconds) * 1e-18
      let uptime = state.uptime
      let due = state.sleepers.filter { $0.value.until <= uptime }
      for id in due.keys { state.sleepers[id] = nil }
      // The sleeping tasks are sorted, because a dictionary has another order in each run. Tasks whose sleeps end at the same time wake in
      // the order of their calls of `sleep(for:)`.
      return due.sorted { ($0.value.until, $0.key) < ($1.value.until, $1.key) }.map(\.value.continuation)
    }
    // The tasks are resumed without the lock, because a resumption calls the task's executor, which may call this clock.
    for continuation in woken { continuation.resume(returning: true) }
  }

  /// Sets the wall clock, as a user or the network does, without a change of the uptime.
  public func setWall(to date: Date) { state.withLock { $0.now = date } }

  /// Sets the wall clock ahead, or back by a negative number of seconds, without a change of the uptime.
  public func setWall(by seconds: TimeInterval) { state.withLock { $0.now += seconds } }

  /// Sleeps until the test has advanced the clock by the duration.
  ///
  /// - Throws: `CancellationError` if the task is cancelled.
  public func sleep(for duration: Duration) async throws {
    let id = state.withLock { state in
      state.last += 1
      return state.last
    }
    let isOver = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: (isOver: Bool?, watchers: [CheckedContinuation<Void, Never>]) = state.withLock { state in
          // A cancellation that came before the sleeper is stored has found no sleeper to resume, so the task must not begin to sleep. A
          // later cancellation waits for the lock, and then finds the stored sleeper.
          if Task.isCancelled { return (false, []) }
          // Only `advance` and a cancellation wake sleepers, so a sleep of zero must end at once and not wait for the next advance.
          if duration <= .zero { return (true, []) }
          state.sleepers[id] = Sleeper(until: state.uptime + duration, continuation: continuation)
          return (nil, Self.takeWatchers(&state))
        }
        if let isOver = answer.isOver { continuation.resume(returning: isOver) }
        for watcher in answer.watchers { watcher.resume() }
      }
    } onCancel: {
      // The call that removes a sleeper from the state also resumes its task, so that the task is resumed only once even if `advance` and a
      // cancellation run at the same time.
      state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume(returning: false)
    }
    guard isOver else { throw CancellationError() }
  }

  /// Waits until at least `count` tasks sleep on this clock, by default one.
  public func waitForSleepers(_ count: Int = 1) async {
    await withCheckedContinuation { continuation in
      // The sleepers are counted and the waiting test is added to `watchers` under one lock. A task that fell asleep between the count and
      // the addition to `watchers` would not wake the test, and the test could wait for ever.
      let isThere = state.withLock { state in
        if state.sleepers.count >= count { return true }
        state.watchers.append((count, continuation))
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  /// Removes and returns the continuations of ``waitForSleepers(_:)`` whose count is reached.
  private static func takeWatchers(_ state: inout State) -> [CheckedContinuation<Void, Never>] {
    let count = state.sleepers.count
    let ready = state.watchers.filter { $0.count <= count }.map(\.continuation)
    state.watchers.removeAll { $0.count <= count }
    return ready
  }
}
