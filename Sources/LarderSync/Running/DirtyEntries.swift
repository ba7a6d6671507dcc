internal import Larder
internal import Synchronization

/// The entries with edits that the server has not taken: what is to be sent is found without a look at all of them.
///
/// It follows the commits of the store; whoever asks is told what is there by then.
final class DirtyEntries: Sendable {
  /// The finding of a look.
  private struct Mark: Sendable {
    let scope: String
    let isParked: Bool
    let groups: [UInt64]
  }

  private struct State: Sendable {
    var marks: [RecordKey: Mark] = [:]
    var queues: [String: SendQueue] = [:]
    /// The numbers of entries that the server has refused, by scope.
    var parked: [String: Int] = [:]
    /// The commit up to which all entries were looked for; `nil` before the first search.
    var searched: Revision?
    /// The entries that were looked at before they were committed, which they may never be.
    var staged: Set<RecordKey> = []
    /// The collections that were met.
    var collections: Set<String> = []
  }

  private let store: Store
  private let records: Int
  private let changes: StoredChanges
  private let state = Mutex(State())

  init(_ store: Store, records: Int) {
    (self.store, self.records) = (store, records)
    // First, so that nothing comes between this and the search.
    changes = store.changes(of: records)
  }

  /// Returns the numbers of entries that are to be sent, by scope.
  ///
  /// - Parameter isExact: Whether the newest commit counts even where it was not announced yet, which costs a look at all entries.
  func counts(isExact: Bool) -> [String: Int] { current(isExact: isExact) { $0.queues.mapValues(\.count).filter { $0.value > 0 } } }

  /// The number of entries with edits, those that the server has refused included.
  var countWithRejected: Int { current { $0.marks.count } }

  /// The records of the entries with edits, in the order of their keys.
  var pendingRecords: [SyncPendingRecord] {
    let marks = current { $0.marks }
    return marks.sorted { $0.key < $1.key }.compactMap { key, mark in
      guard let address = SyncEntry.address(key) else { return nil }
      return SyncPendingRecord(
        collection: address.collection, recordID: address.key.text, scope: mark.scope, isRefused: mark.isParked)
    }
  }

  /// Returns the number of entries that are to be sent to a scope, within a write.
  func count(of scope: String) -> Int { current { $0.queues[scope]?.count ?? 0 } }

  /// Returns the number of entries of a scope with edits that were announced, those that the server has refused included.
  func countWithRejected(of scope: String) -> Int { current(isExact: false) { ($0.queues[scope]?.count ?? 0) + ($0.parked[scope] ?? 0) } }

  /// Returns the scopes that some entries are to be sent to, whose changes were announced.
  func scopes(toSend keys: Set<RecordKey>) -> Set<String> {
    current(isExact: false) { state in
      keys.reduce(into: []) { scopes, key in
        if let mark = state.marks[key], !mark.isParked { scopes.insert(mark.scope) }
      }
    }
  }

  /// Returns the entries of the next push of a scope, within a write.
  ///
  /// - Parameter limit: The most that are asked for.
  func next(of scope: String, limit: Int, in pending: PendingState) -> SendQueue.Candidates {
    current { state in
      // Edits that are committed together with this write. Whether they are is not known yet: they only add to what is looked at.
      for key in pending.staged(in: records) {
        let stored = pending.stored(key, in: records)
        guard let stored, SyncEntry(readable: stored)?.isDirty == true else { continue }
        look(at: key, stored, &state)
        state.staged.insert(key)
      }
      let marks = state.marks
      return state.queues[scope]?.next(limit) { key in
        guard let mark = marks[key], !mark.isParked, mark.scope == scope else { return nil }
        return mark.groups
      } ?? SendQueue.Candidates()
    }
  }

  /// Does something with what is known, once it is that of the newest commit.
  ///
  /// Cost: a look at what has changed. Within a write everything was announced; elsewhere all entries are looked at where the newest commit
  /// was not.
  /// - Parameter isExact: Whether the newest commit counts even where it was not announced yet.
  private func current<Output: Sendable>(isExact: Bool = true, _ body: (inout State) -> Output) -> Output {
    state.withLock { state in
      // In this order: the snapshot has what was announced, and what was not yet is looked for in it.
      let covered = state.searched.map { max(store.announced, $0) }
      let changed = changes.take().union(state.staged)
      state.staged = []
      let snapshot = store.stored
      for key in changed { look(at: key, snapshot.stored(key, in: records), &state) }
      if covered.map({ isExact && snapshot.revision > $0 }) ?? true { search(snapshot, after: covered ?? .zero, &state) }
      return body(&state)
    }
  }

  /// Looks at all entries that were written since a commit, and at those that may be gone.
  ///
  /// Cost: a look at each entry; only those that were written are read.
  private func search(_ snapshot: StoredSnapshot, after covered: Revision, _ state: inout State) {
    for key in Array(state.marks.keys) where !snapshot.has(key, in: records) { look(at: key, nil, &state) }
    snapshot.visit(records, after: covered) { look(at: $0, $1, &state) }
    state.searched = snapshot.revision
  }

  /// Looks at one entry as it is stored.
  private func look(at key: RecordKey, _ stored: StoredValue?, _ state: inout State) {
    let known = state.marks.removeValue(forKey: key)
    if let known, known.isParked { state.parked[known.scope]? -= 1 }
    if let known, !known.isParked { state.queues[known.scope]?.count -= 1 }
    // What cannot be read is met, and told of, when it is to be sent.
    guard let stored, let entry = SyncEntry(readable: stored), let edits = entry.edits else { return }
    state.marks[key] = Mark(scope: entry.scope, isParked: edits.isParked, groups: edits.groups)
    // A collection whose last record was deleted is not there before it is asked for.
    if let name = SyncEntry.address(key)?.collection, state.collections.insert(name).inserted { _ = store.collection(named: name) }
    if edits.isParked { return state.parked[entry.scope, default: 0] += 1 }
    state.queues[entry.scope, default: SendQueue()].count += 1
    // What is queued already is found there.
    let isQueued = known.map { !$0.isParked && $0.scope == entry.scope } ?? false
    if edits.groups.isEmpty {
      if !isQueued || known?.groups.isEmpty != true { state.queues[entry.scope]?.add(key, to: nil) }
    } else {
      for group in edits.groups where !isQueued || known?.groups.contains(group) != true { state.queues[entry.scope]?.add(key, to: group) }
    }
  }
}

/// The entries of one scope that are to be sent: found by group, the oldest first, without a look at all of them.
struct SendQueue: Sendable {
  /// The keys of each group; a key may be in several, and may be there no longer.
  private var members: [UInt64: OrderedQueue<RecordKey>] = [:]
  private var groups = OrderedQueue<UInt64>()
  /// The keys of entries without a group, which were there before they were synced.
  private var alone = OrderedQueue<RecordKey>()
  /// The number of entries that are to be sent.
  var count = 0

  /// The entries of the next push.
  struct Candidates: Sendable {
    var keys: [RecordKey] = []
    /// Whether they are a part of a group that does not fit into any push.
    var isDivided = false
  }

  mutating func add(_ key: RecordKey, to group: UInt64?) {
    guard let group else { return alone.append(key) }
    if members[group] == nil { groups.append(group) }
    members[group, default: OrderedQueue()].append(key)
  }

  /// Returns the entries of the next push: whole groups with those that share a record with them, as many as fit; of a group that does not
  /// fit into any push, a part.
  ///
  /// Cost: in proportion to what is returned, but for entries that are to be sent no longer, each of which is met once.
  /// - Parameter groupsOf: Returns the groups of an entry that is to be sent to this scope; `nil` for any other.
  mutating func next(_ limit: Int, _ groupsOf: (RecordKey) -> [UInt64]?) -> Candidates {
    var chosen: [RecordKey] = []
    var (keys, seen) = (Set<RecordKey>(), Set<UInt64>())
    do {
      let members = members
      groups.prepare { members[$0] != nil }
    }
    for position in groups.indices where !seen.contains(groups[position]) {
      let component = component(of: groups[position], limit, &keys, &seen, groupsOf)
      if component.count > limit, chosen.isEmpty { return Candidates(keys: Array(component.prefix(limit)), isDivided: true) }
      if chosen.count + component.count > limit { return Candidates(keys: chosen) }
      chosen += component
      if chosen.count == limit { return Candidates(keys: chosen) }
    }
    alone.prepare { groupsOf($0)?.isEmpty == true }
    for position in alone.indices where chosen.count < limit {
      let key = alone[position]
      if groupsOf(key)?.isEmpty == true, keys.insert(key).inserted { chosen.append(key) }
    }
    return Candidates(keys: chosen)
  }

  /// Returns the entries that share a group with those of one, directly or by way of others; one more than the limit at most.
  private mutating func component(
    of group: UInt64, _ limit: Int, _ keys: inout Set<RecordKey>, _ seen: inout Set<UInt64>, _ groupsOf: (RecordKey) -> [UInt64]?
  ) -> [RecordKey] {
    var component: [RecordKey] = []
    var waiting = [group]
    while let group = waiting.popLast() {
      guard seen.insert(group).inserted, var queue = members.removeValue(forKey: group) else { continue }
      queue.prepare { groupsOf($0)?.contains(group) == true }
      // A group that has nobody left is forgotten.
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

/// Elements in their order, taken from the front: those that are no longer wanted are dropped when it is their turn.
struct OrderedQueue<Element: Comparable & Sendable>: Sendable {
  private var elements: [Element] = []
  private var start = 0
  private var isSorted = true

  /// The positions of what is left.
  var indices: Range<Int> { start..<elements.count }

  subscript(position: Int) -> Element { elements[position] }

  mutating func append(_ element: Element) {
    if let last = elements.last, element < last { isSorted = false }
    elements.append(element)
  }

  /// Puts the elements in their order, and drops unwanted ones at the front.
  ///
  /// Cost: a look at those that are dropped; sorting where an element came out of order.
  mutating func prepare(_ isWanted: (Element) -> Bool) {
    if !isSorted {
      elements = elements[start...].filter(isWanted).sorted()
      (start, isSorted) = (0, true)
    }
    while start < elements.count, !isWanted(elements[start]) { start += 1 }
    // What was dropped is moved over once it is the larger part: each element a constant number of times.
    guard start > elements.count / 2 else { return }
    elements.removeFirst(start)
    start = 0
  }
}
