internal import Foundation
internal import Synchronization

/// Readings of the wall clock and the monotonic clock, and the newest revision, all taken when a cache was created.
///
/// The cache uses the readings to compute the age of entries that earlier runs of the app have stored.
struct CacheStart: Sendable {
  let wall: Date
  let uptime: Duration
  let revision: Revision

  /// Date that the wall clock would have shown when the monotonic clock read zero.
  var origin: Date { wall.addingTimeInterval(-uptime.inSeconds) }
}

/// A log of how the wall clock was set when each commit was announced, to date commits that the cache did not make itself.
///
/// With the log, an entry of another cache or process ages by the monotonic clock from its arrival on, even if the wall clock is set later.
/// Entries that were stored before the cache was created are dated by the clock readings of ``CacheStart``.
final class ArrivalClock: ChangeObserver {
  /// A range of commits that arrived between two settings of the wall clock.
  private struct Stretch: Sendable {
    let from: Revision
    /// Date that the wall clock would have shown when the monotonic clock read zero.
    let origin: Date
  }

  private struct State: Sendable {
    /// Ranges of commits, in ascending order of their first commit.
    ///
    /// The first range of commits begins at revision zero, so it also dates the entries of earlier runs of the app.
    var stretches: [Stretch]
    /// Revision of the newest commit that the store has announced to this observer.
    var heard: Revision
  }

  /// Largest number of ranges of commits, so that a wall clock that is set again and again does not grow memory without a bound.
  private static let limit = 100
  /// The wall clock counts as set if it has moved by more than this number of seconds against the monotonic clock.
  private static let tolerance: TimeInterval = 1

  private let clock: any WallClock
  private let state: Mutex<State>

  init(_ start: CacheStart, clock: any WallClock) {
    self.clock = clock
    state = Mutex(State(stretches: [Stretch(from: .zero, origin: start.origin)], heard: start.revision))
  }

  /// Revision of the newest commit that the store has announced to the `ArrivalClock`, for tests.
  var heard: Revision { state.withLock { $0.heard } }

  /// Returns the date that the wall clock would show at `uptime` if it was not set since the commit `revision` arrived.
  func present(for revision: Revision, at uptime: Duration) -> Date {
    let now = clock.now
    return state.withLock { state in
      // The store publishes a commit to readers before it announces the commit. A commit with a number above `heard` was published but not
      // announced yet, so it counts as arriving now, with the present setting of the wall clock.
      guard revision <= state.heard else { return now }
      let stretch = state.stretches.last { $0.from <= revision } ?? state.stretches[0]
      return stretch.origin.addingTimeInterval(uptime.inSeconds)
    }
  }

  func receive(_ changes: [RecordChange], commit: Revision) {
    let origin = clock.now.addingTimeInterval(-clock.uptime.inSeconds)
    state.withLock { state in
      let last = state.stretches[state.stretches.count - 1]
      if abs(origin.timeIntervalSince(last.origin)) > Self.tolerance {
        // The new range begins after the newest announced commit, because all announced commits arrived before the wall clock was set.
        state.stretches.append(Stretch(from: Revision(state.heard.number + 1), origin: origin))
        // If there are too many ranges of commits, the second range is dropped. The first range stays, because it dates all entries that
        // earlier runs of the app have stored.
        if state.stretches.count > Self.limit { state.stretches.remove(at: 1) }
      }
      state.heard = max(state.heard, commit)
    }
  }

  func finish() {}
}
