internal import DequeModule
internal import Synchronization

/// An observer that buffers the announced changes for one reader, and wakes the reader.
///
/// The reader owns the feed, and the hub (``ChangeHub``) holds it weakly.
final class ChangeFeed: ChangeObserver {
  private struct State: Sendable {
    /// Changes that were received before ``begin(after:)``, or `nil` afterwards.
    var early: [(change: RecordChange, commit: Revision)]? = []
    var start = Revision.zero
    /// Newest commit that was announced.
    var told = Revision.zero
    var buffer = ChangeBuffer()
    /// Filter of a reader that has processed all changes it took, by which others are left out.
    var filter: (any ChangeFilter)? {
      didSet { filterNumber += 1 }
    }
    /// Number of times that the filter was set.
    private(set) var filterNumber = 0
  }

  private let state = Mutex(State())
  /// Signal that is raised when there are changes to take, and finished with the store.
  private let signal = Signal()

  /// Drops the changes received so far.
  ///
  /// For a reader that is about to read the published state, which has them all.
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
    // Tested without the lock, since a test may decode the record and a reader may be waiting for the lock.
    let (filter, filterNumber, start) = state.withLock { ($0.early == nil ? $0.filter : nil, $0.filterNumber, $0.start) }
    var passes: [Bool]?
    if let filter {
      // Nearly always a commit has one change, which does not pass. Every live query tests it, so this case makes no array.
      let first = changes.firstIndex { $0.revision > start && filter.passes($0) } ?? changes.endIndex
      if first == changes.endIndex, hasLeftOut(upTo: commit, filterNumber) { return }
      passes = changes.indices.map { $0 == first || ($0 > first && changes[$0].revision > start && filter.passes(changes[$0])) }
    }
    let isReady = state.withLock { state in
      state.told = max(state.told, commit)
      // The start is not known yet, so `begin(after:)` decides which of them count.
      guard state.early == nil else {
        state.early? += changes.map { ($0, $0.end(upTo: commit)) }
        return false
      }
      // A filter that was replaced meanwhile must leave nothing out.
      let passes = state.filterNumber == filterNumber ? passes : nil
      for (position, change) in changes.enumerated() where change.revision > state.start {
        // A change that does not pass may still cancel a buffered change of the same record.
        if let passes, !passes[position], state.buffer.isEmpty || !state.buffer.contains(change.key) { continue }
        state.buffer.add(change, upTo: change.end(upTo: commit))
      }
      return !state.buffer.isEmpty
    }
    if isReady { signal.raise() }
  }

  /// Leaves out changes that did not pass a filter, and notes that their commit was announced.
  /// - Returns: `false` if they may still matter, because changes are buffered or the filter was replaced meanwhile.
  private func hasLeftOut(upTo commit: Revision, _ filterNumber: Int) -> Bool {
    state.withLock { state in
      guard state.early == nil, state.filterNumber == filterNumber, state.buffer.isEmpty else { return false }
      state.told = max(state.told, commit)
      return true
    }
  }

  func finish() { signal.finish() }

  /// Leaves out changes that do not pass a filter from now on, until the reader takes some.
  ///
  /// So changes that no reader needs do not add up, even while the reader is not waiting. Only for a reader that has processed every change
  /// it took. Changes that are buffered already can make fewer later ones matter, but never more.
  func pass(only filter: (any ChangeFilter)?) { state.withLock { $0.filter = filter } }

  /// Returns the oldest set that was not taken yet, as soon as there is one, or `nil` at the end and when the task is cancelled.
  nonisolated(nonsending) func next() async -> (revision: Revision, changes: [RecordChange])? {
    await take(nil) { $0.takeFirst() }
  }

  /// Returns all changes that were not taken yet, as soon as there are any, or `nil` at the end and when the task is cancelled.
  ///
  /// Each record is there once. While the reader waits, changes that do not pass the filter are left out, because waking the reader for
  /// them would cost a writer more than the filter does.
  nonisolated(nonsending) func nextAll(passing filter: (any ChangeFilter)?) async -> [RecordChange]? {
    await take(filter) { $0.isEmpty ? nil : $0.takeAll() }
  }

  private nonisolated(nonsending) func take<Taken: Sendable>(
    _ filter: (any ChangeFilter)?, _ take: @Sendable (inout ChangeBuffer) -> Taken?
  ) async -> Taken? {
    while !Task.isCancelled {
      // Both are read before the buffer. A change that comes after the look ends the wait, and changes before the end are still taken.
      let (moment, isFinished) = (signal.moment, signal.isFinished)
      let taken = state.withLock { state in
        let taken = take(&state.buffer)
        // Taken changes alter the reader's results, so until it waits again every change may matter.
        state.filter = taken == nil ? filter : nil
        return taken
      }
      if taken != nil || isFinished { return taken }
      await signal.wait(after: moment)
    }
    return nil
  }

  /// Newest commit that was announced, or `nil` while changes wait for the reader.
  var toldRevision: Revision? { state.withLock { $0.buffer.isEmpty && $0.early == nil ? $0.told : nil } }

  /// Number of changes that wait for the reader, for tests.
  var waitingCount: Int { state.withLock { $0.buffer.count } }
  /// Whether a reader waits, for tests.
  var isAwaited: Bool { signal.isAwaited }
}

/// A test of whether a change matters to a reader whose buffer is empty, which the feed runs when it receives changes.
///
/// An object, because a closure is wrapped once more each time it is stored and taken out.
protocol ChangeFilter: AnyObject, Sendable {
  func passes(_ change: RecordChange) -> Bool
}

extension RecordChange {
  /// Returns the commit that ends the set of this change, when it is announced together with others up to a commit.
  ///
  /// For commits of other processes only the last change of each record is known, so only the state at their end existed.
  fileprivate func end(upTo commit: Revision) -> Revision { origin == .anotherProcess ? commit : revision }
}

/// The changes that a reader has not taken yet, at most one for each record, in sets that end at a commit.
///
/// Each commit has a set of its own as long as no record changes twice. When one does, all sets from its first change on become one. Moving
/// a change from one set to another would show a state that never existed.
struct ChangeBuffer: Sendable {
  private struct Group: Sendable {
    var revision: Revision
    /// Number behind that of the set's last change.
    var end: Int
  }

  /// Changes in the order in which their records first changed, or `nil` where two have cancelled out.
  private var changes: Deque<RecordChange?> = []
  /// Number of the first of ``changes``, which grows when changes are taken out.
  private var first = 0
  private var positions: [RecordKey: Int] = [:]
  private var groups: Deque<Group> = []

  /// Number of records that have changed.
  var count: Int { positions.count }
  var isEmpty: Bool { positions.isEmpty }
  func contains(_ key: RecordKey) -> Bool { positions[key] != nil }

  /// Adds a change to the set that ends at a commit, which is the change's own unless given.
  ///
  /// The change must not be older than any in the buffer. Cost: constant on average.
  mutating func add(_ change: RecordChange, upTo commit: Revision? = nil) {
    let commit = commit ?? change.revision
    guard let position = positions[change.key], let earlier = changes[position - first] else {
      if groups.last?.revision != commit { groups.append(Group(revision: commit, end: first + changes.count)) }
      positions[change.key] = first + changes.count
      changes.append(change)
      groups[groups.count - 1].end += 1
      return
    }
    // The states between the two changes of the record can no longer be shown.
    groups.removeLast(groups.count - group(of: position))
    groups.append(Group(revision: commit, end: first + changes.count))
    let merged = earlier.followed(by: change)
    changes[position - first] = merged
    // The record came and went before the reader has seen it.
    if merged == nil {
      positions[change.key] = nil
      compactIfWorthwhile()
    }
  }

  /// Removes and returns the oldest set.
  mutating func takeFirst() -> (revision: Revision, changes: [RecordChange])? {
    while let group = groups.popFirst() {
      let taken = changes.prefix(group.end - first).compactMap { $0 }
      changes.removeFirst(group.end - first)
      first = group.end
      for change in taken { positions[change.key] = nil }
      // A set whose changes have all cancelled out is skipped.
      if !taken.isEmpty { return (group.revision, taken) }
    }
    return nil
  }

  /// Removes and returns all changes, each record once.
  mutating func takeAll() -> [RecordChange] {
    defer { self = ChangeBuffer() }
    return changes.compactMap { $0 }
  }

  /// Returns the position of the set that holds a change.
  private func group(of position: Int) -> Int {
    var (low, high) = (0, groups.count)
    while low < high {
      let middle = (low + high) / 2
      if groups[middle].end <= position { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Closes the gaps of changes that have cancelled out, once they are the larger part.
  private mutating func compactIfWorthwhile() {
    // A record that comes and goes again and again would otherwise let the buffer grow without bound.
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
  /// Returns this change and a later one of the same record as one, or `nil` if they cancel out.
  ///
  /// The origin is that of the later change, unless that was a migration. The value then still has the meaning that the earlier change gave
  /// it.
  func followed(by later: RecordChange) -> RecordChange? {
    if old == nil, later.new == nil { return nil }
    return RecordChange(
      collection: collection, key: key, revision: later.revision, origin: later.origin == .migration ? origin : later.origin, old: old,
      new: later.new)
  }
}
