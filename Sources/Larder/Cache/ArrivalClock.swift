internal import Foundation
internal import Synchronization

/// The clocks and the newest commit at the time when a cache was made.
///
/// They date the entries of earlier runs.
struct CacheStart: Sendable {
  let wall: Date
  let uptime: Duration
  let revision: Revision

  /// Date that the wall clock would have shown at zero of the monotonic clock.
  var origin: Date { wall.addingTimeInterval(-uptime.inSeconds) }
}

/// Dates the commits that a cache did not make itself, by the two clocks as they were when each commit arrived.
///
/// An entry of another cache or process thus ages by the monotonic clock from its arrival, even if the wall clock is set later. Entries
/// that were stored before the cache was made are dated by the readings of ``CacheStart``.
final class ArrivalClock: ChangeObserver {
  /// A range of commits between two settings of the wall clock.
  private struct Stretch: Sendable {
    let from: Revision
    /// Date that the wall clock would have shown at zero of the monotonic clock.
    let origin: Date
  }

  private struct State: Sendable {
    /// In the order of commits.
    ///
    /// The first holds for all commits before the second.
    var stretches: [Stretch]
    /// Newest commit that was announced.
    var heard: Revision
  }

  /// Number of remembered settings of the wall clock.
  private static let limit = 100
  /// Drift between the clocks, in seconds, above which the wall clock counts as set.
  private static let tolerance: TimeInterval = 1

  private let clock: any WallClock
  private let state: Mutex<State>

  init(_ start: CacheStart, clock: any WallClock) {
    self.clock = clock
    state = Mutex(State(stretches: [Stretch(from: .zero, origin: start.origin)], heard: start.revision))
  }

  /// The newest commit that was announced, for tests.
  var heard: Revision { state.withLock { $0.heard } }

  /// Returns the present date by the wall clock as it was set when a commit arrived.
  func present(for revision: Revision, at uptime: Duration) -> Date {
    let now = clock.now
    return state.withLock { state in
      // Readers see a commit before it is announced. The clock of this moment is then that of the arrival.
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
        // From the next commit on: those already announced arrived under the clock as it was set before.
        state.stretches.append(Stretch(from: Revision(state.heard.number + 1), origin: origin))
        // The second, since the first dates all commits of earlier runs.
        if state.stretches.count > Self.limit { state.stretches.remove(at: 1) }
      }
      state.heard = max(state.heard, commit)
    }
  }

  func finish() {}
}
