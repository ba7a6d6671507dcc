internal import DequeModule

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
