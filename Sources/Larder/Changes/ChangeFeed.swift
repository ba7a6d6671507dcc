internal import DequeModule
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

/// The changes that a reader has not taken yet: at most one of each record, in sets that end at a commit.
///
/// Commits stay apart as long as no record changes twice. When one does, all sets from its first change on become one: to move a change
/// from one set to another would show a state that never was.
struct ChangeBuffer: Sendable {
  private struct Group: Sendable {
    var revision: Revision
    /// One past the number of its last change.
    var end: Int
  }

  /// The changes in the order in which records first changed; `nil` where they cancelled out.
  private var changes: Deque<RecordChange?> = []
  /// The number of the first of ``changes``: numbers go on when changes are taken out.
  private var first = 0
  private var positions: [RecordKey: Int] = [:]
  private var groups: Deque<Group> = []

  /// The number of records that have changed.
  var count: Int { positions.count }
  var isEmpty: Bool { positions.isEmpty }
  func contains(_ key: RecordKey) -> Bool { positions[key] != nil }

  /// Adds a change that is as new as the newest, or newer, to the set that ends at a commit: the change's own unless given.
  ///
  /// Cost: constant on average.
  mutating func add(_ change: RecordChange, upTo commit: Revision? = nil) {
    let commit = commit ?? change.revision
    guard let position = positions[change.key], let earlier = changes[position - first] else {
      if groups.last?.revision != commit { groups.append(Group(revision: commit, end: first + changes.count)) }
      positions[change.key] = first + changes.count
      changes.append(change)
      groups[groups.count - 1].end += 1
      return
    }
    groups.removeLast(groups.count - group(of: position))
    groups.append(Group(revision: commit, end: first + changes.count))
    let merged = earlier.followed(by: change)
    changes[position - first] = merged
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
      if !taken.isEmpty { return (group.revision, taken) }
    }
    return nil
  }

  /// Removes and returns all changes, each record once.
  mutating func takeAll() -> [RecordChange] {
    defer { self = ChangeBuffer() }
    return changes.compactMap { $0 }
  }

  /// Returns the position of the group that holds a change.
  private func group(of position: Int) -> Int {
    var (low, high) = (0, groups.count)
    while low < high {
      let middle = (low + high) / 2
      if groups[middle].end <= position { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Closes the gaps of changes that cancelled out, once they are the larger part.
  private mutating func compactIfWorthwhile() {
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
  /// Returns this change and a later one of the same record as one; `nil` when they cancel out.
  ///
  /// The origin is that of the later one, unless that was a migration: then the value is still the one that the earlier change brought.
  func followed(by later: RecordChange) -> RecordChange? {
    if old == nil, later.new == nil { return nil }
    return RecordChange(
      collection: collection, key: key, revision: later.revision, origin: later.origin == .migration ? origin : later.origin, old: old,
      new: later.new)
  }
}
