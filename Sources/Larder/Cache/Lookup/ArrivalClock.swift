internal import Foundation
internal import Synchronization

/// The clocks and the storage when a cache was made: what the entries of earlier runs are judged by.
struct CacheStart: Sendable {
  let wall: Date
  let uptime: Duration
  let revision: Revision

  /// The date that the wall clock would have shown when the monotonic one began.
  var origin: Date { wall.addingTimeInterval(-uptime.inSeconds) }
}

/// The wall clock by which entries are judged that this cache did not store itself: as it stood to the monotonic clock when they arrived.
///
/// So what another cache of this process stores, or another process while this one listens, ages by the monotonic clock
/// from then on, whatever is done to the wall clock later. What was there before is judged by the reading that was
/// taken when the cache was made.
final class ArrivalClock: ChangeObserver {
  /// Commits during which the wall clock was not set.
  private struct Stretch: Sendable {
    let from: Revision
    /// The date that the wall clock would have shown when the monotonic one began.
    let origin: Date
  }

  private struct State: Sendable {
    /// In the order of their commits; the first is for all before the second.
    var stretches: [Stretch]
    /// The newest commit that was announced.
    var heard: Revision
  }

  /// The number of settings of the clock that are remembered.
  private static let limit = 100
  /// The drift between the clocks, in seconds, beyond which one counts as set.
  private static let tolerance: TimeInterval = 1

  private let clock: any WallClock
  private let state: Mutex<State>

  init(_ start: CacheStart, clock: any WallClock) {
    self.clock = clock
    state = Mutex(State(stretches: [Stretch(from: .zero, origin: start.origin)], heard: start.revision))
  }

  /// The newest commit that was announced: for tests.
  var heard: Revision { state.withLock { $0.heard } }

  /// Returns the present by the wall clock as it was when a commit arrived.
  func present(for revision: Revision, at uptime: Duration) -> Date {
    let now = clock.now
    return state.withLock { state in
      guard revision <= state.heard else { return now }  // it is just arriving
      let stretch = state.stretches.last { $0.from <= revision } ?? state.stretches[0]
      return stretch.origin.addingTimeInterval(uptime.inSeconds)
    }
  }

  func receive(_ changes: [RecordChange], commit: Revision) {
    let origin = clock.now.addingTimeInterval(-clock.uptime.inSeconds)
    state.withLock { state in
      let last = state.stretches[state.stretches.count - 1]
      if abs(origin.timeIntervalSince(last.origin)) > Self.tolerance {
        state.stretches.append(Stretch(from: Revision(state.heard.number + 1), origin: origin))
        if state.stretches.count > Self.limit { state.stretches.remove(at: 1) }
      }
      state.heard = max(state.heard, commit)
    }
  }

  func finish() {}
}
