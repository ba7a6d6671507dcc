internal import Larder
internal import Synchronization

/// An index of the outbox entries with unsent edits, with which a push is built without scanning the outbox.
///
/// The outbox has one entry for each synced record. The index follows the commits of the store, and reads the changed entries before each
/// query of the index.
final class DirtyEntries: Sendable {
  /// The indexed part of one outbox entry.
  private struct Mark: Sendable {
    let scope: String
    /// True if the entry's edits are parked, such as after a refusal by the server, and are left out of pushes.
    let isParked: Bool
    /// Numbers of the transaction groups that the entry's edits belong to.
    let groups: [UInt64]
  }

  private struct State: Sendable {
    var marks: [RecordKey: Mark] = [:]
    var queues: [String: SendQueue] = [:]
    /// Number of entries whose edits are parked, that is, left out of pushes, by the scope in which the record is synced.
    var parked: [String: Int] = [:]
    /// Commit of the last scan of the outbox, or `nil` before the first scan.
    var searched: Revision?
    /// Entries indexed from a pending transaction that may still roll back.
    ///
    /// The staged entries are read again at the next update of the index.
    var staged: Set<RecordKey> = []
    /// Error of the last update, or `nil` if the index has read every changed entry.
    var failure: RepositoryError?
    /// Names of the synced collections that the index has registered with the store.
    var collections: Set<String> = []
  }

  private let store: Store
  private let records: Int
  private let changes: ChangedKeys
  private let state = Mutex(State())

  init(_ store: Store, records: Int) {
    (self.store, self.records) = (store, records)
    // The index subscribes to changes before its first scan, so that no commit falls between the subscription and the scan.
    changes = store.changes(of: records)
  }

  /// Returns the number of outbox entries to send, by scope.
  ///
  /// Scopes without entries to send are left out.
  ///
  /// - Parameter isExact: Whether to include commits that were not announced to observers yet. If a commit was not announced, `counts`
  ///   scans the outbox.
  func counts(isExact: Bool) -> [String: Int] { current(isExact: isExact) { $0.queues.mapValues(\.count).filter { $0.value > 0 } } }

  /// Number of outbox entries with unsent edits, including parked edits.
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

  /// Returns the number of outbox entries to send in a scope, as of the newest commit.
  ///
  /// Call `count(of:)` only within a write of the store, in which the newest commit was announced, so that the index needs no scan.
  /// - Throws: The error of reading the changed entries.
  func count(of scope: String) throws(RepositoryError) -> Int {
    let (count, failure) = current { ($0.queues[scope]?.count ?? 0, $0.failure) }
    if let failure { throw failure }
    return count
  }

  /// Returns the number of a scope's entries with unsent edits, including parked edits, as of the last announced commit.
  func countWithRejected(of scope: String) -> Int { current(isExact: false) { ($0.queues[scope]?.count ?? 0) + ($0.parked[scope] ?? 0) } }

  /// Returns the scopes of those entries among `keys` that are to be sent, as of the last announced commit.
  func scopes(toSend keys: Set<RecordKey>) -> Set<String> {
    current(isExact: false) { state in
      keys.reduce(into: []) { scopes, key in
        if let mark = state.marks[key], !mark.isParked { scopes.insert(mark.scope) }
      }
    }
  }

  /// Returns the outbox entries of a scope's next push.
  ///
  /// Call `next(of:limit:in:)` only within a write of the store. The result includes entries of edits that this write has made.
  ///
  /// - Parameter limit: The largest number of entries to return.
  /// - Throws: The error of reading the changed entries.
  func next(of scope: String, limit: Int, in pending: PendingState) throws(RepositoryError) -> SendQueue.Candidates {
    let staged = try pending.staged(in: records).map { key throws(RepositoryError) in (key, try pending.stored(key, in: records)) }
    let (candidates, failure) = current { state in
      // Earlier writes of the same commit may have made edits. The commit may still fail, so the entries of these edits are added to
      // `staged` and read again later.
      for (key, stored) in staged {
        guard let stored, SyncEntry(readable: stored)?.isDirty == true else { continue }
        look(at: key, stored, &state)
        state.staged.insert(key)
      }
      let marks = state.marks
      let candidates = state.queues[scope]?.next(limit) { key in
        // Each key of a queue is checked against the index, since a queue keeps keys whose entries were sent, parked or moved to another
        // scope.
        guard let mark = marks[key], !mark.isParked, mark.scope == scope else { return nil }
        return mark.groups
      }
      return (candidates ?? SendQueue.Candidates(), state.failure)
    }
    if let failure { throw failure }
    return candidates
  }

  /// Runs `body` on the index after the index has read the entries changed by newer commits.
  ///
  /// Each call reads the entries that were changed since the last call. If the storage of the entries cannot be read, `body` gets the index
  /// without them, and the next call reads them again. If `isExact` is true and the newest commit was not announced yet,
  /// the call scans the outbox. Within a write of the store, every earlier commit was announced.
  /// - Parameter isExact: Whether to include commits that were not announced to observers yet.
  private func current<Output: Sendable>(isExact: Bool = true, _ body: (inout State) -> Output) -> Output {
    state.withLock { state in
      // The announced revision is read before the snapshot, so that the snapshot contains every announced commit. Commits that observers
      // have not received yet are found in the snapshot by their revision.
      let covered = state.searched.map { max(store.announced, $0) }
      let changed = changes.takeKeys().union(state.staged)
      state.staged = []
      let snapshot = store.stored
      do throws(RepositoryError) {
        for key in changed { look(at: key, try snapshot.stored(key, in: records), &state) }
        // The first use of the index always scans the outbox, since entries of an earlier process were never announced to this process.
        if covered.map({ isExact && snapshot.revision > $0 }) ?? true { try search(snapshot, after: covered ?? .zero, &state) }
        state.failure = nil
      } catch {
        state.staged = changed
        state.failure = error
      }
      return body(&state)
    }
  }

  /// Indexes the entries written since a commit, and removes entries that no longer exist from the index.
  ///
  /// The search visits each outbox entry, and decodes only entries that were written after the commit `covered`.
  private func search(_ snapshot: StoredSnapshot, after covered: Revision, _ state: inout State) throws(RepositoryError) {
    for key in Array(state.marks.keys) where try !snapshot.has(key, in: records) { look(at: key, nil, &state) }
    try snapshot.visit(records, after: covered) { look(at: $0, $1, &state) }
    state.searched = snapshot.revision
  }

  /// Updates the index with the stored value of one entry, or removes the entry if the value is `nil`.
  private func look(at key: RecordKey, _ stored: StoredValue?, _ state: inout State) {
    let known = state.marks.removeValue(forKey: key)
    if let known, known.isParked { state.parked[known.scope]? -= 1 }
    if let known, !known.isParked { state.queues[known.scope]?.count -= 1 }
    // An unreadable entry is left out of the index, and the next edit of its record throws `.corrupted`.
    guard let stored, let entry = SyncEntry(readable: stored), let edits = entry.edits else { return }
    state.marks[key] = Mark(scope: entry.scope, isParked: edits.isParked, groups: edits.groups)
    // Registers the entry's collection with the store. After a restart, a collection without records is unknown to the store, and deletions
    // of its records could not be sent.
    if let name = SyncEntry.address(key)?.collection, state.collections.insert(name).inserted { _ = store.collection(named: name) }
    if edits.isParked { return state.parked[entry.scope, default: 0] += 1 }
    state.queues[entry.scope, default: SendQueue()].count += 1
    // A key is not added to the same queue twice, since a record that is edited 1,000 times before a push would be queued 1,000 times.
    let isQueued = known.map { !$0.isParked && $0.scope == entry.scope } ?? false
    if edits.groups.isEmpty {
      if !isQueued || known?.groups.isEmpty != true { state.queues[entry.scope]?.add(key, to: nil) }
    } else {
      for group in edits.groups where !isQueued || known?.groups.contains(group) != true { state.queues[entry.scope]?.add(key, to: group) }
    }
  }
}

/// The send queue of one scope: outbox entries by transaction, with the oldest transaction first.
///
/// The cost to find the next push is in proportion to the size of the push, not to the number of unsent edits.
struct SendQueue: Sendable {
  /// Keys of the entries of each transaction group, by the group's number.
  ///
  /// A group holds the records of one transaction, or of several that changed the same record. The records of a group are pushed together,
  /// unless the group is too large for one push.
  ///
  /// A key may be in several groups. After its entry was sent, a key stays in the queue until the key's group is read for a later push.
  private var members: [UInt64: OrderedQueue<RecordKey>] = [:]
  private var groups = OrderedQueue<UInt64>()
  /// Keys of entries without a group: records that existed before their collection was synced.
  private var alone = OrderedQueue<RecordKey>()
  /// Number of the scope's entries to send, without keys whose entries were sent.
  var count = 0

  /// Outbox entries for the next push.
  struct Candidates: Sendable {
    var keys: [RecordKey] = []
    /// True if the entries are a part of a group that is too large for any push.
    var isDivided = false
  }

  /// Adds an entry to the queue of a transaction group, or to the entries without a group.
  mutating func add(_ key: RecordKey, to group: UInt64?) {
    guard let group else { return alone.append(key) }
    if members[group] == nil { groups.append(group) }
    members[group, default: OrderedQueue()].append(key)
  }

  /// Returns the entries of the next push: as many whole transaction groups as fit within the limit.
  ///
  /// Two groups that share a record are returned together. If a group has more entries than `limit`, only `limit` of its entries are
  /// returned.
  ///
  /// The cost is in proportion to the number of returned entries. A key whose entry need not be sent any more is visited once and removed
  /// from the queue.
  /// - Parameter groupsOf: Returns the transaction groups of an entry that is to be sent in the queue's scope, and `nil` for any other key.
  mutating func next(_ limit: Int, _ groupsOf: (RecordKey) -> [UInt64]?) -> Candidates {
    var chosen: [RecordKey] = []
    var (keys, seen) = (Set<RecordKey>(), Set<UInt64>())
    do {
      // The closure captures a copy of `members`, since it must not read `self` while `groups` is being changed.
      let members = members
      groups.prepare { members[$0] != nil }
    }
    for position in groups.indices where !seen.contains(groups[position]) {
      let component = component(of: groups[position], limit: limit, keys: &keys, seen: &seen, groupsOf)
      if component.count > limit, chosen.isEmpty { return Candidates(keys: Array(component.prefix(limit)), isDivided: true) }
      // A later group is not chosen even if it would fit, so that the oldest edits are sent first.
      if chosen.count + component.count > limit { return Candidates(keys: chosen) }
      chosen += component
      if chosen.count == limit { return Candidates(keys: chosen) }
    }
    // Entries without a group come last, so that the user's edits are sent before records that existed before their collection was synced.
    alone.prepare { groupsOf($0)?.isEmpty == true }
    for position in alone.indices where chosen.count < limit {
      let key = alone[position]
      if groupsOf(key)?.isEmpty == true, keys.insert(key).inserted { chosen.append(key) }
    }
    return Candidates(keys: chosen)
  }

  /// Returns the entries of a group and of all groups that are linked to it by shared records.
  ///
  /// At most one entry more than the limit is returned, which shows the caller that the limit is exceeded.
  private mutating func component(
    of group: UInt64, limit: Int, keys: inout Set<RecordKey>, seen: inout Set<UInt64>, _ groupsOf: (RecordKey) -> [UInt64]?
  ) -> [RecordKey] {
    var component: [RecordKey] = []
    var waiting = [group]
    while let group = waiting.popLast() {
      guard seen.insert(group).inserted, var queue = members.removeValue(forKey: group) else { continue }
      queue.prepare { groupsOf($0)?.contains(group) == true }
      // The group was removed from `members` and is put back only if it has entries left, so that groups that were sent use no memory.
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

/// A sorted queue with lazy removal: unwanted elements are dropped when they reach the front of the queue.
struct OrderedQueue<Element: Comparable & Sendable>: Sendable {
  private var elements: [Element] = []
  private var start = 0
  private var isSorted = true

  /// Positions of the elements that are still in the queue.
  var indices: Range<Int> { start..<elements.count }

  subscript(position: Int) -> Element { elements[position] }

  mutating func append(_ element: Element) {
    // Changed keys come as a set, in any order, so `prepare` sorts the elements once.
    if let last = elements.last, element < last { isSorted = false }
    elements.append(element)
  }

  /// Sorts the queue's elements if needed, and drops unwanted elements at the front.
  ///
  /// The elements are sorted only if an element was appended out of order. Without sorting, `prepare` visits only the dropped elements and
  /// the first remaining element.
  mutating func prepare(_ isWanted: (Element) -> Bool) {
    if !isSorted {
      elements = elements[start...].filter(isWanted).sorted()
      (start, isSorted) = (0, true)
    }
    while start < elements.count, !isWanted(elements[start]) { start += 1 }
    // The remaining elements are moved only after more than half of the array was dropped, so that there are fewer moves than dropped
    // elements.
    guard start > elements.count / 2 else { return }
    elements.removeFirst(start)
    start = 0
  }
}
