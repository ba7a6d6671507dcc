internal import DequeModule
internal import Synchronization

/// An observer that buffers the announced changes of a collection for one reader, and wakes that reader.
///
/// The reader of a feed owns the feed. The ``ChangeHub`` of the store holds each feed weakly, so a feed that its reader has released
/// receives no more changes.
final class ChangeFeed: ChangeObserver {
  private struct State: Sendable {
    /// Changes that were announced before the call of ``begin(after:)``, or `nil` after that call.
    var early: [(change: RecordChange, commit: Revision)]? = []
    /// Newest commit whose state the reader has, so that only changes of later commits are buffered.
    var start = Revision.zero
    /// Newest commit that the hub has announced to this feed.
    var told = Revision.zero
    var buffer = ChangeBuffer()
    /// Filter that drops changes which do not matter to the reader, or `nil` to buffer every change.
    ///
    /// The filter is `nil` while the reader processes the changes that it took from the buffer.
    var filter: (any ChangeFilter)? {
      didSet { filterNumber += 1 }
    }
    /// Number of times that ``filter`` was set, by which ``ChangeFeed/receive(_:commit:)`` detects a replaced filter.
    private(set) var filterNumber = 0
  }

  private let state = Mutex(State())
  /// Signal that is raised when the buffer has changes for the reader, and finished when the store is closed.
  private let signal = Signal()

  /// Drops the buffered changes and the filter.
  ///
  /// A reader calls `restart()` before it reads the published state of the store, so that no commit between the two calls is lost. The
  /// published state already includes every change that `restart()` drops.
  func restart() {
    state.withLock { state in
      state.early = []
      state.buffer = ChangeBuffer()
      state.filter = nil
    }
  }

  /// Starts buffering the changes of commits after `commit`, whose state the reader has read or will receive in another way.
  func begin(after commit: Revision) {
    state.withLock { state in
      state.start = commit
      state.told = max(state.told, commit)
      for (change, end) in state.early ?? [] where change.revision > commit { state.buffer.add(change, upTo: end) }
      state.early = nil
    }
  }

  func receive(_ changes: [RecordChange], commit: Revision) {
    // The filter runs without the lock, because it may decode a record, and a reader that takes changes would wait for the lock.
    let (filter, filterNumber, start) = state.withLock { ($0.early == nil ? $0.filter : nil, $0.filterNumber, $0.start) }
    var passes: [Bool]?
    if let filter {
      // Most commits have one change, which does not pass the filter. If no change passes, this method allocates no array, because it runs
      // for every live query at every commit.
      let first = changes.firstIndex { $0.revision > start && filter.passes($0) } ?? changes.endIndex
      if first == changes.endIndex, hasLeftOut(upTo: commit, filterNumber) { return }
      passes = changes.indices.map { $0 == first || ($0 > first && changes[$0].revision > start && filter.passes(changes[$0])) }
    }
    let isReady = state.withLock { state in
      state.told = max(state.told, commit)
      // Before `begin(after:)` the reader's commit is unknown, so all changes are kept in `early`. `begin(after:)` drops the changes up to
      // the reader's commit.
      guard state.early == nil else {
        state.early? += changes.map { ($0, $0.end(upTo: commit)) }
        return false
      }
      // If the reader has replaced the filter since this method read it, the results of the old filter are ignored and all changes are
      // buffered.
      let passes = state.filterNumber == filterNumber ? passes : nil
      for (position, change) in changes.enumerated() where change.revision > state.start {
        // A change that does not pass the filter must still be merged into a buffered change of the same record. Without the merge the
        // reader would get a stale value of that record.
        if let passes, !passes[position], state.buffer.isEmpty || !state.buffer.contains(change.key) { continue }
        state.buffer.add(change, upTo: change.end(upTo: commit))
      }
      return !state.buffer.isEmpty
    }
    if isReady { signal.raise() }
  }

  /// Records the announcement of a commit whose changes the filter has dropped.
  ///
  /// - Returns: `false` if the changes must be buffered after all, because other changes are in the buffer or the filter was replaced
  ///   meanwhile.
  private func hasLeftOut(upTo commit: Revision, _ filterNumber: Int) -> Bool {
    state.withLock { state in
      guard state.early == nil, state.filterNumber == filterNumber, state.buffer.isEmpty else { return false }
      state.told = max(state.told, commit)
      return true
    }
  }

  func finish() { signal.finish() }

  /// Sets a filter that drops changes when they arrive, until the reader takes changes from the buffer.
  ///
  /// The filter keeps the buffer from growing while the reader does other work. Call `pass(only:)` only after the reader has processed
  /// every change that it took from the buffer. The filter may assume that the buffer is empty: changes already in the buffer may make
  /// later changes irrelevant to the reader, but never relevant.
  func pass(only filter: (any ChangeFilter)?) { state.withLock { $0.filter = filter } }

  /// Returns the oldest buffered change set as soon as there is one, or `nil` when the store is closed or the task is cancelled.
  nonisolated(nonsending) func next() async -> (revision: Revision, changes: [RecordChange])? {
    await take(nil) { $0.takeFirst() }
  }

  /// Returns all buffered changes as soon as there are any, or `nil` when the store is closed or the task is cancelled.
  ///
  /// The result has one merged change for each record. While the reader waits, the filter drops changes that do not matter to it, because
  /// waking the reader for a change that does not matter would cost the writer more than the filter does.
  nonisolated(nonsending) func nextAll(passing filter: (any ChangeFilter)?) async -> [RecordChange]? {
    await take(filter) { $0.isEmpty ? nil : $0.takeAll() }
  }

  private nonisolated(nonsending) func take<Taken: Sendable>(
    _ filter: (any ChangeFilter)?, _ take: @Sendable (inout ChangeBuffer) -> Taken?
  ) async -> Taken? {
    while !Task.isCancelled {
      // The signal is read before the buffer, so that a change which arrives after the read of the buffer ends the wait at the end of this
      // loop. Changes that arrived before the store was closed are still returned.
      let (moment, isFinished) = (signal.moment, signal.isFinished)
      let taken = state.withLock { state in
        let taken = take(&state.buffer)
        // The changes that a reader takes alter its results. Until the reader has processed the taken changes, the old filter could drop
        // later changes that matter.
        state.filter = taken == nil ? filter : nil
        return taken
      }
      if taken != nil || isFinished { return taken }
      await signal.wait(after: moment)
    }
    return nil
  }

  /// Newest commit that was announced to this feed, or `nil` while the feed holds changes for its reader or before ``begin(after:)``.
  var toldRevision: Revision? { state.withLock { $0.buffer.isEmpty && $0.early == nil ? $0.told : nil } }

  /// Number of records with a buffered change, for tests.
  var waitingCount: Int { state.withLock { $0.buffer.count } }
  /// True if a reader waits for a change, for tests.
  var isAwaited: Bool { signal.isAwaited }
}

/// A test of whether a change matters to a reader whose buffer is empty, which ``ChangeFeed`` runs for each change that it receives.
///
/// The filter is an object and not a closure, because Swift wraps a closure once more each time it is stored and read back.
protocol ChangeFilter: AnyObject, Sendable {
  func passes(_ change: RecordChange) -> Bool
}

extension RecordChange {
  /// Returns the commit that ends the change set of this change, when one announcement has the changes of several commits up to `commit`.
  ///
  /// Of several commits of another process, only the last change of each record is known. The changes of several commits of another process
  /// lead only to the state of the newest commit, so they form one change set that ends there.
  fileprivate func end(upTo commit: Revision) -> Revision { origin == .anotherProcess ? commit : revision }
}

/// The changes that a reader has not taken yet: at most one for each record, grouped into change sets that each end at a commit.
///
/// Each commit has a change set of its own as long as no record has changed twice. If a record changes again, all change sets from its
/// first change to the newest become one. If only the repeated change moved into another change set, the reader would get a state that the
/// store had at no commit.
struct ChangeBuffer: Sendable {
  private struct Group: Sendable {
    /// Commit at which the change set ends.
    var revision: Revision
    /// Position after the last change of the change set, counted like ``ChangeBuffer/first``.
    var end: Int
  }

  /// One change for each record, ordered by the first change of the record, or `nil` where an insertion and a deletion cancelled out.
  private var changes: Deque<RecordChange?> = []
  /// Position of the first element of ``changes``, so that the positions of later changes stay valid when the reader takes the first
  /// changes.
  private var first = 0
  private var positions: [RecordKey: Int] = [:]
  private var groups: Deque<Group> = []

  /// Number of records with a change in the buffer.
  var count: Int { positions.count }
  var isEmpty: Bool { positions.isEmpty }
  func contains(_ key: RecordKey) -> Bool { positions[key] != nil }

  /// Adds a change to the change set that ends at `commit`, by default the commit of the change.
  ///
  /// The change must not be older than any change in the buffer. Adding a change takes amortized constant time.
  mutating func add(_ change: RecordChange, upTo commit: Revision? = nil) {
    let commit = commit ?? change.revision
    guard let position = positions[change.key], let earlier = changes[position - first] else {
      if groups.last?.revision != commit { groups.append(Group(revision: commit, end: first + changes.count)) }
      positions[change.key] = first + changes.count
      changes.append(change)
      groups[groups.count - 1].end += 1
      return
    }
    // Two changes of one record are merged. The reader can then not get the states between the two commits, so all change sets from the one
    // with the first change on become one.
    groups.removeLast(groups.count - group(of: position))
    groups.append(Group(revision: commit, end: first + changes.count))
    let merged = earlier.followed(by: change)
    changes[position - first] = merged
    // If the record was inserted and deleted before the reader took either change, the reader needs neither of them.
    if merged == nil {
      positions[change.key] = nil
      compactIfWorthwhile()
    }
  }

  /// Removes and returns the oldest change set.
  mutating func takeFirst() -> (revision: Revision, changes: [RecordChange])? {
    while let group = groups.popFirst() {
      let taken = changes.prefix(group.end - first).compactMap { $0 }
      changes.removeFirst(group.end - first)
      first = group.end
      for change in taken { positions[change.key] = nil }
      // A change set is empty if all its changes have cancelled out, and the reader must not get an empty change set.
      if !taken.isEmpty { return (group.revision, taken) }
    }
    return nil
  }

  /// Removes and returns all changes, one for each record.
  mutating func takeAll() -> [RecordChange] {
    defer { self = ChangeBuffer() }
    return changes.compactMap { $0 }
  }

  /// Returns the index in ``groups`` of the change set that holds the change at a position.
  private func group(of position: Int) -> Int {
    var (low, high) = (0, groups.count)
    while low < high {
      let middle = (low + high) / 2
      if groups[middle].end <= position { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Removes the `nil` gaps that cancelled changes left in ``changes``, once ``changes`` has over 64 elements and most of them are gaps.
  private mutating func compactIfWorthwhile() {
    // Without compaction, a record that is inserted and deleted again and again would add a gap each time, and the buffer would grow
    // without bound.
    guard changes.count > 64, positions.count < changes.count / 2 else { return }
    let old = self
    self = ChangeBuffer()
    var next = 0
    for group in old.groups {
      for change in old.changes.prefix(group.end - old.first).dropFirst(next) {
        guard let change else { continue }
        positions[change.key] = changes.count
        changes.append(change)
      }
      next = group.end - old.first
      if changes.count > groups.last?.end ?? 0 { groups.append(Group(revision: group.revision, end: changes.count)) }
    }
  }
}

extension RecordChange {
  /// Returns one change that merges this change with a later one of the same record, or `nil` if the two changes are an insertion and a
  /// deletion.
  ///
  /// The merged change has the origin of the later change. If the later change is a migration, the merged change has the earlier origin
  /// instead, because a migration changes the form of a value and not its meaning.
  func followed(by later: RecordChange) -> RecordChange? {
    if old == nil, later.new == nil { return nil }
    return RecordChange(
      collection: collection, key: key, revision: later.revision, origin: later.origin == .migration ? origin : later.origin, old: old,
      new: later.new)
  }
}
