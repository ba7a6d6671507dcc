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
