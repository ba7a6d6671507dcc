internal import Dispatch
internal import Synchronization

/// The content of one index at one commit: not built, being built, or built.
enum IndexBody: Sendable {
  /// The index is not built, because no query has needed the index yet.
  case absent
  /// The index is being built from the records of an earlier commit. When the build ends, it applies the associated changes.
  case building(ChangeLog)
  /// The index is built, and has a log of later changes of records that the next reader of the index applies. See ``FollowedIndex``.
  case followed(FollowedIndex)
  case ordered(PersistentTree<IndexEntry>)
  /// An ordered index in the storage, with its later changes.
  case stored(StoredEntries)
  case geo(GeoIndex)
  case text(TextIndex)

  /// True if queries can use the index.
  var isBuilt: Bool {
    switch self {
    case .absent, .building: false
    case .stored(let entries): !entries.run.isUnfit
    case .followed, .ordered, .geo, .text: true
    }
  }
}

/// A change of one record: the record before and after, where `old` is `nil` for an insertion and `new` is `nil` for a removal.
struct IndexChange: Sendable {
  let old: RecordSlot?
  let new: RecordSlot?
}

/// The changes of records since the build of an index began, in the order of the writes.
struct ChangeLog: Sendable {
  /// Parts of ``partSize`` changes, which never change.
  ///
  /// Each commit appends to a log that the published state has, too. It copies the last changes and the list of the parts, but not all
  /// changes.
  private var parts: [[IndexChange]] = []
  private var last: [IndexChange] = []
  private static let partSize = 256

  var isEmpty: Bool { last.isEmpty }
  var count: Int { parts.count * Self.partSize + last.count }

  mutating func append(_ change: IndexChange) {
    if last.count == Self.partSize {
      parts.append(last)
      last = []
    }
    last.append(change)
  }

  /// Visits the changes in order, until `body` returns `false`.
  ///
  /// - Returns: False if `body` returned `false`.
  @discardableResult
  func forEach(_ body: (IndexChange) -> Bool) -> Bool { parts.allSatisfy { $0.allSatisfy(body) } && last.allSatisfy(body) }

  /// Removes the first parts, at least `count` changes if there are so many, and returns them as a log.
  mutating func removeFirst(_ count: Int) -> ChangeLog {
    let partCount = max((count + Self.partSize - 1) / Self.partSize, 1)
    guard partCount <= parts.count else {
      defer { self = ChangeLog() }
      return self
    }
    var removed = ChangeLog()
    removed.parts = Array(parts.prefix(partCount - 1))
    removed.last = parts[partCount - 1]
    parts.removeFirst(partCount)
    return removed
  }
}

extension IndexDefinition {
  /// Applies changes of records to a built index, in the order of the writes.
  func apply(_ changes: some Collection<IndexChange>, to body: inout IndexBody) {
    if case .text(var text) = body {
      // `body` is emptied first, so that `text` is the only owner of its trees. If the trees had a second owner, each change would copy
      // tree nodes.
      body = .absent
      text.apply(changes.lazy.map { TextChange($0, self) })
      body = .text(text)
    } else {
      for change in changes { _ = apply(change, to: &body) }
    }
  }

  /// Applies a change of one record to a built index.
  ///
  /// - Returns: True if the index is unique and another record has the same values.
  func apply(_ change: IndexChange, to body: inout IndexBody) -> Bool {
    let (old, new) = (change.old, change.new)
    var isContested = false
    switch body {
    // `IndexSet` and `FollowedIndex` append changes to the logs of `.building` and `.followed`, and call `apply` only with a built index in
    // memory.
    case .absent, .building, .followed, .stored:
      break
    case .ordered(var tree):
      // `body` is emptied first, so that `tree` has one owner and changes in place. If the tree had a second owner, each change would copy
      // its nodes.
      body = .absent
      let (before, after) = (old.flatMap(entry), new.flatMap(entry))
      // If the indexed values did not change, `insert` replaces the entry. Removing the entry before the insertion would cost a second
      // descent of the tree.
      let isMoved = before != after
      // If a type decodes the same bytes to other values each time, `remove` cannot find the entry by its values. `sweep` then compares the
      // record key of every entry.
      if let before, isMoved, tree.remove(before) == nil { tree.sweep(before.slot.key) }
      if let after {
        if isUnique, isMoved {
          // Entries with equal values are neighbours in the tree, so a duplicate is directly before or directly after the new entry.
          let (left, right) = tree.neighbours(of: after)
          isContested = (left?.hasValues(of: after) == true || right?.hasValues(of: after) == true) && !after.hasNull
        }
        // If `insert` replaced no entry of an updated record, the record decoded to other values when its old entry was made. The old entry
        // is still in the tree, and `sweep` removes it.
        if tree.insert(after) == nil, before != nil, !isMoved { tree.sweep(after.slot.key, butFor: after.slot) }
      }
      body = .ordered(tree)
    case .geo(var geo):
      body = .absent
      if let old, let place = place(old), !geo.remove(old.key, at: place) { geo.sweep(old.key) }
      if let new, let place = place(new) { geo.insert(held(new), at: place) }
      body = .geo(geo)
    case .text(var text):
      body = .absent
      text.apply(CollectionOfOne(TextChange(change, self)))
      body = .text(text)
    }
    return isContested
  }
}

extension IndexChange {
  /// The change with stubs in place of the records.
  var stubs: IndexChange { IndexChange(old: old?.stub, new: new?.stub) }
}

/// The change of a record's entry in an ordered index that the storage can hold.
struct StoredEdit {
  let before: IndexEntry?
  let after: IndexEntry?

  /// Returns `nil` if a record has no entry, or one that is too long: such an index stays in memory.
  ///
  /// A record that does not decode may decode in a later version of the app, which the index in the storage could not notice.
  /// - Parameter stubs: Stubs of both records, for a caller that makes the edits of several indexes.
  init?(_ change: IndexChange, _ definition: IndexDefinition, stubs: IndexChange) {
    before = change.old.flatMap { slot in stubs.old.flatMap { definition.entry(slot, heldAs: $0) } }
    after = change.new.flatMap { slot in stubs.new.flatMap { definition.entry(slot, heldAs: $0) } }
    guard (change.old == nil) == (before == nil), (change.new == nil) == (after == nil) else { return nil }
    if let after, !IndexKey.fits(after) { return nil }
  }
}

extension TextChange {
  init(_ change: IndexChange, _ definition: IndexDefinition) {
    self.init(
      old: change.old.flatMap { slot in definition.texts(slot).map { (slot, $0) } },
      new: change.new.flatMap { slot in definition.texts(slot).map { (definition.held(slot), $0) } })
  }
}

/// An index at one commit: a built index, and a log of later changes that are not applied yet.
///
/// A commit usually only appends its changes to the log, so that a write does not wait for indexes. The first reader of the index applies
/// the changes and stores the result for later readers. If ``many`` or more changes are pending, a background thread applies them together,
/// which costs less than applying them one by one. In a pause between writes the store calls ``settled(_:)``, which applies all changes.
/// The settled index has an empty log, so the replaced records that the old log kept alive can be freed. If ``limit`` changes are pending,
/// the next write applies all of them before it adds its own change.
struct FollowedIndex: Sendable {
  private var log: IndexLog
  /// Number of changes at the start of the log that belong to this commit or an earlier one.
  ///
  /// The log may also hold changes of later commits.
  private var count: Int

  /// Creates a followed index from a built index, with an empty log of changes.
  init(_ body: IndexBody) { (log, count) = (IndexLog(body, []), 0) }

  /// Number of pending changes from which a background thread applies the changes.
  static let many = 64
  /// Largest number of changes in a log that are not applied to the index yet.
  ///
  /// The limit bounds the work of a read, which applies all pending changes on its own thread without suspending its task.
  private static let limit = 512

  /// Appends a change of one record to the log.
  ///
  /// Cost: one append in most cases. If ``limit`` changes are pending, the function applies all of them.
  mutating func follow(_ change: IndexChange, _ definition: IndexDefinition) {
    // If the log is empty and no other commit shares it, the change goes straight into the index and needs no append.
    if isKnownUniquelyReferenced(&log), log.applyInPlace(change, definition) { return }
    // While writes follow each other without a pause, the store does not empty the log. Without a limit, the log would grow without bound.
    if count >= Self.limit {
      (log, count) = (IndexLog(log.bodyWaiting(for: count, definition), []), 0)
      if log.applyInPlace(change, definition) { return }
    }
    if let renewed = log.note(change, behind: count) { (log, count) = renewed } else { count += 1 }
    // The background thread starts after the append, so that the thread applies the new change, too.
    if count >= Self.many { log.startApplying(definition) }
  }

  /// Returns the index at this commit with all pending changes applied.
  func body(_ definition: IndexDefinition) -> IndexBody { log.body(at: count, definition) }

  /// True if the log holds a change, even one of a write that was rolled back.
  ///
  /// A log with changes keeps the replaced records in memory, so the store calls `settled(_:)` to free them.
  var keepsChanges: Bool { log.hasChanges }

  /// Returns the same index with its pending changes applied and an empty log.
  ///
  /// `settled` may block its thread, so it is called on a dispatch queue and not in a task.
  func settled(_ definition: IndexDefinition) -> FollowedIndex { FollowedIndex(log.bodyWaiting(for: count, definition)) }

  /// True if two followed indexes share one log object and see the same number of its changes.
  func isSame(as other: FollowedIndex) -> Bool { log === other.log && count == other.count }
}

/// An index and a log of later changes, shared by several commits.
///
/// Each commit sees a prefix of the log.
private final class IndexLog: Sendable {
  private struct Contents: Sendable {
    var base: IndexBody
    var changes: [IndexChange]
    /// Index after the first `count` changes, for the longest prefix of the log that was read so far.
    var newest: (count: Int, body: IndexBody)?
    /// Index after the first `count` changes, for a shorter prefix that a reader of an older commit needed, or the previous ``newest``.
    var older: (count: Int, body: IndexBody)?

    /// Returns the stored index with the most changes applied, among those with no more than the first `count` changes.
    func start(for count: Int) -> (count: Int, body: IndexBody) {
      if let newest, newest.count <= count { return newest }
      if let older, older.count <= count { return older }
      return (0, base)
    }
  }

  private let contents: Mutex<Contents>
  /// Mutex that ``bodyWaiting(for:_:)`` holds, so that two of its callers do not apply the same changes at once.
  private let applying = Mutex(())
  // True once the log's only background thread was started. `isApplying` is never reset.
  private let isApplying = Atomic(false)

  init(_ base: IndexBody, _ changes: [IndexChange]) {
    contents = Mutex(Contents(base: base, changes: changes))
  }

  deinit {
    let contents = contents.withLock { $0 }
    // A log with many changes keeps many tree nodes alive. If the store's executor drops the last reference to the log, freeing the nodes
    // in `deinit` would delay commits. A background thread therefore usually drops the last reference to the contents of a log with many
    // changes.
    if contents.changes.count >= FollowedIndex.many { DispatchQueue.global(qos: .utility).async { withExtendedLifetime(contents) {} } }
  }

  /// Appends a change directly after the first `count` changes, in this log or in a new log.
  ///
  /// - Returns: The new log that holds the change, with its number of changes, or `nil` if this log holds the change.
  func note(_ change: IndexChange, behind count: Int) -> (IndexLog, count: Int)? {
    contents.withLock { contents in
      let start = contents.start(for: count)
      // Changes beyond `count` belong to a write that was rolled back, so the change goes into a new log without them. If some of the first
      // `count` changes are applied already, the new log starts from the resulting index and drops the applied changes.
      guard start.count > 0 || contents.changes.count != count else {
        contents.changes.append(change)
        return nil
      }
      let changes = contents.changes[start.count..<count] + [change]
      return (IndexLog(start.body, Array(changes)), changes.count)
    }
  }

  /// Applies a change directly to the base index, for a caller that is the log's only owner.
  ///
  /// - Returns: False if the log holds changes, in which case the change is not applied.
  func applyInPlace(_ change: IndexChange, _ definition: IndexDefinition) -> Bool {
    contents.withLock { contents in
      // Changes must reach the index in the order of their writes, so a change cannot overtake the changes in the log.
      guard contents.changes.isEmpty else { return false }
      _ = definition.apply(change, to: &contents.base)
      return true
    }
  }

  /// True if the log holds a change, whether or not a stored index already contains it.
  var hasChanges: Bool { contents.withLock { !$0.changes.isEmpty } }

  /// Returns the index after the first `count` changes of the log, and stores the result for later readers.
  func body(at count: Int, _ definition: IndexDefinition) -> IndexBody {
    let (start, changes) = contents.withLock { contents in
      let start = contents.start(for: count)
      return (start, contents.changes[start.count..<count])
    }
    if changes.isEmpty { return start.body }
    // The changes are applied while the mutex is unlocked, so that commits that append to the log do not wait.
    var body = start.body
    definition.apply(changes, to: &body)
    let applied = body
    // The closure returns the displaced index, so that the index is freed after the mutex is unlocked. Freeing a whole tree takes time.
    _ = contents.withLock { contents in
      let displaced = contents.older
      if let newest = contents.newest, newest.count >= count {
        contents.older = (count, applied)
      } else {
        (contents.older, contents.newest) = (contents.newest, (count, applied))
      }
      return displaced
    }
    return body
  }

  /// Returns the result of ``body(at:_:)``, after waiting for any other thread that is in `bodyWaiting`.
  ///
  /// `bodyWaiting` may block its thread, so it is called on the store's executor or on a dispatch queue, and not in a task.
  func bodyWaiting(for count: Int, _ definition: IndexDefinition) -> IndexBody {
    applying.withLock { _ in body(at: count, definition) }
  }

  /// Starts a background thread that applies all changes, even changes appended while it runs, unless the log has already started one.
  func startApplying(_ definition: IndexDefinition) {
    guard isApplying.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged else { return }
    DispatchQueue.global(qos: .utility).async {
      var applied = 0
      // `isApplying` stays `true`, because the log then contains applied changes, and `note` puts the next change into a new log.
      while case let count = self.contents.withLock({ $0.changes.count }), count > applied {
        _ = self.bodyWaiting(for: count, definition)
        applied = count
      }
    }
  }
}
