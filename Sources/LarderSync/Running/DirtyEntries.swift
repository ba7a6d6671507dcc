internal import Larder
internal import Synchronization

/// An index of the outbox entries with unsent edits, so that a push is put together without scanning the outbox.
///
/// The outbox has one entry for each synced record. The index follows the commits of the store and catches up before each answer.
final class DirtyEntries: Sendable {
  /// The indexed part of one entry.
  private struct Mark: Sendable {
    let scope: String
    /// True for edits that are set aside, such as after a refusal, and are not sent by themselves.
    let isParked: Bool
    /// The transactions that the edits belong to.
    let groups: [UInt64]
  }

  private struct State: Sendable {
    var marks: [RecordKey: Mark] = [:]
    var queues: [String: SendQueue] = [:]
    /// Number of parked entries, by scope.
    var parked: [String: Int] = [:]
    /// Commit of the last scan of the outbox, or `nil` before the first one.
    var searched: Revision?
    /// Entries indexed from a pending transaction that may still roll back.
    ///
    /// They are read again at the next update.
    var staged: Set<RecordKey> = []
    /// Names of the collections with indexed entries.
    var collections: Set<String> = []
  }

  private let store: Store
  private let records: Int
  private let changes: ChangedKeys
  private let state = Mutex(State())

  init(_ store: Store, records: Int) {
    (self.store, self.records) = (store, records)
    // Subscribed before the first scan, so that no commit falls between the two.
    changes = store.changes(of: records)
  }

  /// Returns the number of entries to send, by scope.
  ///
  /// Scopes without any are left out.
  ///
  /// - Parameter isExact: Whether to count commits that were not announced yet. Such a commit costs a scan of the outbox.
  func counts(isExact: Bool) -> [String: Int] { current(isExact: isExact) { $0.queues.mapValues(\.count).filter { $0.value > 0 } } }

  /// Number of entries with unsent edits, including parked ones.
  var countWithRejected: Int { current { $0.marks.count } }

  /// Records with unsent edits, in the order of their keys.
  var pendingRecords: [SyncPendingRecord] {
    let marks = current { $0.marks }
    return marks.sorted { $0.key < $1.key }.compactMap { key, mark in
      guard let address = SyncEntry.address(key) else { return nil }
      return SyncPendingRecord(
        collection: address.collection, recordID: address.key.text, scope: mark.scope, isRefused: mark.isParked)
    }
  }

  /// Returns the number of entries to send in a scope.
  ///
  /// Called within a write.
  func count(of scope: String) -> Int { current { $0.queues[scope]?.count ?? 0 } }

  /// Returns the number of entries of a scope with unsent edits, including parked ones, as of the last announced commit.
  func countWithRejected(of scope: String) -> Int { current(isExact: false) { ($0.queues[scope]?.count ?? 0) + ($0.parked[scope] ?? 0) } }

  /// Returns the scopes in which any of these entries is to be sent, as of the last announced commit.
  func scopes(toSend keys: Set<RecordKey>) -> Set<String> {
    current(isExact: false) { state in
      keys.reduce(into: []) { scopes, key in
        if let mark = state.marks[key], !mark.isParked { scopes.insert(mark.scope) }
      }
    }
  }

  /// Returns the entries of a scope's next push.
  ///
  /// Called within a write.
  ///
  /// - Parameter limit: The most entries to return.
  func next(of scope: String, limit: Int, in pending: PendingState) -> SendQueue.Candidates {
    current { state in
      // Edits in the same commit as this write. The commit may still fail, so they are added to `staged` and read again later.
      for key in pending.staged(in: records) {
        let stored = pending.stored(key, in: records)
        guard let stored, SyncEntry(readable: stored)?.isDirty == true else { continue }
        look(at: key, stored, &state)
        state.staged.insert(key)
      }
      let marks = state.marks
      return state.queues[scope]?.next(limit) { key in
        // A queue keeps keys whose entries were sent, parked or moved since. The mark is the truth.
        guard let mark = marks[key], !mark.isParked, mark.scope == scope else { return nil }
        return mark.groups
      } ?? SendQueue.Candidates()
    }
  }

  /// Runs `body` on the index after it has caught up with the newest commit.
  ///
  /// Cost: reading the changed entries. A newest commit that was not announced yet costs a scan of the outbox, which cannot happen in a
  /// write.
  /// - Parameter isExact: Whether to catch up with commits that were not announced yet.
  private func current<Output: Sendable>(isExact: Bool = true, _ body: (inout State) -> Output) -> Output {
    state.withLock { state in
      // The order matters. The snapshot contains every announced commit, so later commits are found by their revision in it.
      let covered = state.searched.map { max(store.announced, $0) }
      let changed = changes.takeKeys().union(state.staged)
      state.staged = []
      let snapshot = store.stored
      for key in changed { look(at: key, snapshot.stored(key, in: records), &state) }
      // The first use always scans: entries of an earlier process were never announced to this one.
      if covered.map({ isExact && snapshot.revision > $0 }) ?? true { search(snapshot, after: covered ?? .zero, &state) }
      return body(&state)
    }
  }

  /// Reads the entries written since a commit, and removes those that no longer exist.
  ///
  /// Cost: a visit of each entry. Only entries written since `covered` are decoded.
  private func search(_ snapshot: StoredSnapshot, after covered: Revision, _ state: inout State) {
    for key in Array(state.marks.keys) where !snapshot.has(key, in: records) { look(at: key, nil, &state) }
    snapshot.visit(records, after: covered) { look(at: $0, $1, &state) }
    state.searched = snapshot.revision
  }

  /// Updates the index with one entry as it is stored.
  private func look(at key: RecordKey, _ stored: StoredValue?, _ state: inout State) {
    let known = state.marks.removeValue(forKey: key)
    if let known, known.isParked { state.parked[known.scope]? -= 1 }
    if let known, !known.isParked { state.queues[known.scope]?.count -= 1 }
    // An unreadable entry is left out of the index. The next edit of its record throws `.corrupted`.
    guard let stored, let entry = SyncEntry(readable: stored), let edits = entry.edits else { return }
    state.marks[key] = Mark(scope: entry.scope, isParked: edits.isParked, groups: edits.groups)
    // Registers the collection. After a restart, one without records is unknown to the store, and its deletions could not be sent.
    if let name = SyncEntry.address(key)?.collection, state.collections.insert(name).inserted { _ = store.collection(named: name) }
    if edits.isParked { return state.parked[entry.scope, default: 0] += 1 }
    state.queues[entry.scope, default: SendQueue()].count += 1
    // A key that is in the queue already is not added twice: a record edited 1,000 times before a push would fill the queue.
    let isQueued = known.map { !$0.isParked && $0.scope == entry.scope } ?? false
    if edits.groups.isEmpty {
      if !isQueued || known?.groups.isEmpty != true { state.queues[entry.scope]?.add(key, to: nil) }
    } else {
      for group in edits.groups where !isQueued || known?.groups.contains(group) != true { state.queues[entry.scope]?.add(key, to: group) }
    }
  }
}

/// The send queue of one scope: entries by transaction, the oldest first.
///
/// Finding the next push costs in proportion to that push, not to the number of unsent edits.
struct SendQueue: Sendable {
  /// Keys of the entries of each group.
  ///
  /// A group is a transaction, whose records are pushed all or none.
  ///
  /// A key may be in several groups. A key whose entry was sent stays until its group is read.
  private var members: [UInt64: OrderedQueue<RecordKey>] = [:]
  private var groups = OrderedQueue<UInt64>()
  /// Keys of entries without a group: records that existed before their collection was synced.
  private var alone = OrderedQueue<RecordKey>()
  /// Number of entries to send.
  var count = 0

  /// Entries for the next push.
  struct Candidates: Sendable {
    var keys: [RecordKey] = []
    /// True if the entries are a part of a group that is too large for any push.
    var isDivided = false
  }

  /// Adds an entry to the queue of a group, or to the entries without a group.
  mutating func add(_ key: RecordKey, to group: UInt64?) {
    guard let group else { return alone.append(key) }
    if members[group] == nil { groups.append(group) }
    members[group, default: OrderedQueue()].append(key)
  }

  /// Returns the entries of the next push: whole groups, as many as fit.
  ///
  /// Groups that share a record go together. Of a group that is larger than the limit, the entries up to the limit are returned.
  ///
  /// Cost: in proportion to the result. A key that is no longer to be sent costs one visit, which removes it.
  /// - Parameter groupsOf: Returns the groups of an entry that is to be sent in this scope, and `nil` for any other key.
  mutating func next(_ limit: Int, _ groupsOf: (RecordKey) -> [UInt64]?) -> Candidates {
    var chosen: [RecordKey] = []
    var (keys, seen) = (Set<RecordKey>(), Set<UInt64>())
    do {
      // A copy, since the closure must not read `self` while `groups` is being changed.
      let members = members
      groups.prepare { members[$0] != nil }
    }
    for position in groups.indices where !seen.contains(groups[position]) {
      let component = component(of: groups[position], limit, &keys, &seen, groupsOf)
      if component.count > limit, chosen.isEmpty { return Candidates(keys: Array(component.prefix(limit)), isDivided: true) }
      // No later, smaller group is tried: the oldest edits go first.
      if chosen.count + component.count > limit { return Candidates(keys: chosen) }
      chosen += component
      if chosen.count == limit { return Candidates(keys: chosen) }
    }
    // Last, so that the user's edits go before records that existed before their collection was synced.
    alone.prepare { groupsOf($0)?.isEmpty == true }
    for position in alone.indices where chosen.count < limit {
      let key = alone[position]
      if groupsOf(key)?.isEmpty == true, keys.insert(key).inserted { chosen.append(key) }
    }
    return Candidates(keys: chosen)
  }

  /// Returns the entries that share a group with `group`, directly or through other groups.
  ///
  /// Returns at most one entry more than the limit, which shows that the limit is exceeded.
  private mutating func component(
    of group: UInt64, _ limit: Int, _ keys: inout Set<RecordKey>, _ seen: inout Set<UInt64>, _ groupsOf: (RecordKey) -> [UInt64]?
  ) -> [RecordKey] {
    var component: [RecordKey] = []
    var waiting = [group]
    while let group = waiting.popLast() {
      guard seen.insert(group).inserted, var queue = members.removeValue(forKey: group) else { continue }
      queue.prepare { groupsOf($0)?.contains(group) == true }
      // The group was taken out above and is put back only if entries are left, so that sent groups use no memory.
      if queue.indices.isEmpty { continue }
      defer { members[group] = queue }
      for position in queue.indices {
        let key = queue[position]
        guard let groups = groupsOf(key), groups.contains(group), keys.insert(key).inserted else { continue }
        component.append(key)
        if component.count > limit { return component }
        for group in groups where !seen.contains(group) { waiting.append(group) }
      }
    }
    return component
  }
}

/// A sorted queue with lazy removal: unwanted elements are dropped when they come to the front.
struct OrderedQueue<Element: Comparable & Sendable>: Sendable {
  private var elements: [Element] = []
  private var start = 0
  private var isSorted = true

  /// Positions of the remaining elements.
  var indices: Range<Int> { start..<elements.count }

  subscript(position: Int) -> Element { elements[position] }

  mutating func append(_ element: Element) {
    // Changes come as a set, in any order. They are sorted once, in `prepare`.
    if let last = elements.last, element < last { isSorted = false }
    elements.append(element)
  }

  /// Sorts the elements if needed and drops unwanted ones at the front.
  ///
  /// Cost: a visit of each dropped element. Sorting costs only after an element came out of order.
  mutating func prepare(_ isWanted: (Element) -> Bool) {
    if !isSorted {
      elements = elements[start...].filter(isWanted).sorted()
      (start, isSorted) = (0, true)
    }
    while start < elements.count, !isWanted(elements[start]) { start += 1 }
    // Moves the rest only when more than half was dropped, so that each element is moved a constant number of times.
    guard start > elements.count / 2 else { return }
    elements.removeFirst(start)
    start = 0
  }
}
