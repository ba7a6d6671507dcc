internal import Synchronization

/// The buffer of one reader in the hub: receives the changes that are announced, and wakes the reader.
///
/// The reader owns it, the hub holds it weakly.
final class ChangeFeed: ChangeObserver {
  private struct State: Sendable {
    /// The changes received before ``begin(after:)``.
    var early: [(change: RecordChange, commit: Revision)]? = []
    var start = Revision.zero
    /// The newest commit that was announced.
    var told = Revision.zero
    var buffer = ChangeBuffer()
    /// The filter of a reader that has followed all it has taken: what does not pass is left out.
    var filter: (any ChangeFilter)? {
      didSet { filterNumber += 1 }
    }
    /// The number of times that the filter was set.
    private(set) var filterNumber = 0
  }

  private let state = Mutex(State())
  /// Raised when there is something to take, finished with the store.
  private let signal = Signal()

  /// Drops the changes received so far, for a reader that is about to read the published state, which has them all.
  func restart() {
    state.withLock { state in
      state.early = []
      state.buffer = ChangeBuffer()
      state.filter = nil
    }
  }

  /// Begins after a commit whose state the reader has, or gets in another way.
  func begin(after commit: Revision) {
    state.withLock { state in
      state.start = commit
      state.told = max(state.told, commit)
      for (change, end) in state.early ?? [] where change.revision > commit { state.buffer.add(change, upTo: end) }
      state.early = nil
    }
  }

  func receive(_ changes: [RecordChange], commit: Revision) {
    // Tested without the lock, which a reader may be waiting for: a test may decode the record.
    let (filter, filterNumber, start) = state.withLock { ($0.early == nil ? $0.filter : nil, $0.filterNumber, $0.start) }
    var passes: [Bool]?
    if let filter {
      // Nearly always it is one change that does not matter: that is found without an array, since every live query asks.
      let first = changes.firstIndex { $0.revision > start && filter.passes($0) } ?? changes.endIndex
      if first == changes.endIndex, hasLeftOut(upTo: commit, filterNumber) { return }
      passes = changes.indices.map { $0 == first || ($0 > first && changes[$0].revision > start && filter.passes(changes[$0])) }
    }
    let isReady = state.withLock { state in
      state.told = max(state.told, commit)
      guard state.early == nil else {
        state.early? += changes.map { ($0, $0.end(upTo: commit)) }
        return false
      }
      // By a filter that is another one by now, nothing is left out.
      let passes = state.filterNumber == filterNumber ? passes : nil
      for (position, change) in changes.enumerated() where change.revision > state.start {
        // What matters not may still take back what is buffered.
        if let passes, !passes[position], state.buffer.isEmpty || !state.buffer.contains(change.key) { continue }
        state.buffer.add(change, upTo: change.end(upTo: commit))
      }
      return !state.buffer.isEmpty
    }
    if isReady { signal.raise() }
  }

  /// Leaves out changes that did not pass a filter, and notes that they were told.
  /// - Returns: `false` where they may still matter: to what is buffered, or because the filter is another one by now.
  private func hasLeftOut(upTo commit: Revision, _ filterNumber: Int) -> Bool {
    state.withLock { state in
      guard state.early == nil, state.filterNumber == filterNumber, state.buffer.isEmpty else { return false }
      state.told = max(state.told, commit)
      return true
    }
  }

  func finish() { signal.finish() }

  /// Leaves out changes that do not pass, from now on until the reader takes some, whether it waits or not: what nobody needs does not
  /// add up.
  ///
  /// For a reader that has followed every change that it has taken. What is buffered already may make less matter, never more.
  func pass(only filter: (any ChangeFilter)?) { state.withLock { $0.filter = filter } }

  /// Returns the oldest set that was not taken yet, as soon as there is one; `nil` at the end, and when the task is cancelled.
  nonisolated(nonsending) func next() async -> (revision: Revision, changes: [RecordChange])? {
    await take(nil) { $0.takeFirst() }
  }

  /// Returns all changes that were not taken yet, as soon as there is something, each record once; `nil` at the end, and when the task is
  /// cancelled.
  ///
  /// While the reader waits, changes that do not pass the filter are left out: to wake it for them would cost a writer more than the
  /// filter.
  nonisolated(nonsending) func nextAll(passing filter: (any ChangeFilter)?) async -> [RecordChange]? {
    await take(filter) { $0.isEmpty ? nil : $0.takeAll() }
  }

  private nonisolated(nonsending) func take<Taken: Sendable>(
    _ filter: (any ChangeFilter)?, _ take: @Sendable (inout ChangeBuffer) -> Taken?
  ) async -> Taken? {
    while !Task.isCancelled {
      // Noted before looking: what comes afterwards ends the wait. The end is noted first too, since changes may come before it.
      let (moment, isFinished) = (signal.moment, signal.isFinished)
      let taken = state.withLock { state in
        let taken = take(&state.buffer)
        // What the reader has taken changes what matters to it: until it waits again, everything does.
        state.filter = taken == nil ? filter : nil
        return taken
      }
      if taken != nil || isFinished { return taken }
      await signal.wait(after: moment)
    }
    return nil
  }

  /// The newest commit that was announced, if nothing waits for the reader.
  var toldRevision: Revision? { state.withLock { $0.buffer.isEmpty && $0.early == nil ? $0.told : nil } }

  /// The number of changes that wait for the reader: for tests.
  var waitingCount: Int { state.withLock { $0.buffer.count } }
  /// Whether a reader waits: for tests.
  var isAwaited: Bool { signal.isAwaited }
}

/// A test of whether a change matters to a reader whose buffer is empty; asked where the feed receives its changes.
///
/// An object, since a closure is wrapped once more wherever it is kept and taken out.
protocol ChangeFilter: AnyObject, Sendable {
  func passes(_ change: RecordChange) -> Bool
}

extension RecordChange {
  /// Returns the commit that ends the set of this change, when it is announced together with others up to a commit.
  ///
  /// Of other processes' commits only the last change of each record is known, so only their end is a state that was.
  fileprivate func end(upTo commit: Revision) -> Revision { origin == .anotherProcess ? commit : revision }
}
