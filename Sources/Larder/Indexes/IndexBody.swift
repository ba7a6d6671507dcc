internal import Dispatch
internal import Synchronization

/// The content of one index at one commit, in the stage that its build has reached.
enum IndexBody: Sendable {
  /// Not built, because no query has needed the index yet.
  case absent
  /// Being built from the records of an earlier commit. The changes since then are applied when the build ends.
  case building([IndexChange])
  /// Built, with a log of later changes that the next reader applies. See ``FollowedIndex``.
  case followed(FollowedIndex)
  case ordered(PersistentTree<IndexEntry>)
  case geo(GeoIndex)
  case text(TextIndex)

  /// True if queries can use the index.
  var isBuilt: Bool {
    switch self {
    case .absent, .building: false
    case .followed, .ordered, .geo, .text: true
    }
  }
}

/// A change of one record: its slots before and after, either of which is `nil` for an insertion or a removal.
struct IndexChange: Sendable {
  let old: RecordSlot?
  let new: RecordSlot?
}

extension IndexDefinition {
  /// Applies changes of records to an index, in their order.
  func apply(_ changes: some Collection<IndexChange>, to body: inout IndexBody) {
    if case .text(var text) = body {
      // Emptied first, so that `text` has one owner and the trees in it change in place.
      body = .absent
      text.apply(changes.lazy.map { TextChange($0, self) })
      body = .text(text)
    } else {
      for change in changes { _ = apply(change, to: &body) }
    }
  }

  /// Applies a change of one record to an index that is built.
  ///
  /// - Returns: True if the index is unique and holds the new values for another record, too.
  func apply(_ change: IndexChange, to body: inout IndexBody) -> Bool {
    let (old, new) = (change.old, change.new)
    var isContested = false
    switch body {
    // `IndexSet` and `FollowedIndex` log the changes of these cases, and call this function with the built body.
    case .absent, .building, .followed:
      break
    case .ordered(var tree):
      // Taken out of the body while it changes, so that the tree has one owner and changes in place.
      body = .absent
      let (before, after) = (old.flatMap(entry), new.flatMap(entry))
      // Equal values leave the entry in its place: the insertion below then replaces it, and a removal would cost a second descent.
      let isMoved = before != after
      // A type that decodes to other values each time hides its entry from this search: then every entry is looked at.
      if let before, isMoved, tree.remove(before) == nil { tree.sweep(before.slot.key) }
      if let after {
        if isUnique, isMoved {
          // Entries with equal values are neighbours. The second of a group is caught as it arrives, so two looks are enough.
          let (left, right) = tree.neighbours(of: after)
          isContested = (left?.hasValues(of: after) == true || right?.hasValues(of: after) == true) && !after.hasNull
        }
        // The old entry had other values than the record decodes to now, so it is still in the tree and must go.
        if tree.insert(after) == nil, before != nil, !isMoved { tree.sweep(after.slot.key, butFor: after.slot) }
      }
      body = .ordered(tree)
    case .geo(var geo):
      body = .absent
      if let old, let place = place(old), !geo.remove(old.key, at: place) { geo.sweep(old.key) }
      if let new, let place = place(new) { geo.insert(new, at: place) }
      body = .geo(geo)
    case .text(var text):
      body = .absent
      text.apply(CollectionOfOne(TextChange(change, self)))
      body = .text(text)
    }
    return isContested
  }
}

extension TextChange {
  init(_ change: IndexChange, _ definition: IndexDefinition) {
    self.init(
      old: change.old.flatMap { slot in definition.texts(slot).map { (slot, $0) } },
      new: change.new.flatMap { slot in definition.texts(slot).map { (slot, $0) } })
  }
}

/// An index at one commit: a built body, and a log of the changes since then that are not applied yet.
///
/// A commit only appends its changes to the log, so that a write does not wait for indexes. The first reader of the content applies them
/// and stores the result for later readers. From ``many`` changes on, a background thread applies them together, which costs less than one
/// by one. In a pause between writes the store calls ``settled(_:)``, which drops the log and the records that it keeps alive. When
/// ``limit`` changes are pending, a write applies them itself.
struct FollowedIndex: Sendable {
  private var log: IndexLog
  /// Number of the log's changes that belong to this commit.
  private var count: Int

  /// Creates a followed index from a built one, with an empty log.
  init(_ body: IndexBody) { (log, count) = (IndexLog(body, []), 0) }

  /// Number of pending changes from which a background thread applies them.
  static let many = 64
  /// Number of changes that may be pending.
  ///
  /// It bounds the work of a read, which applies them on its own thread and never suspends.
  private static let limit = 512

  /// Appends a change of one record to the log.
  ///
  /// Cost: one append in most cases. With ``limit`` changes pending, it applies them all.
  mutating func follow(_ change: IndexChange, _ definition: IndexDefinition) {
    // After the log was applied, the further changes of one commit own a new log alone and go straight into the index.
    if isKnownUniquelyReferenced(&log), log.applyInPlace(change, definition) { return }
    // Bounds the log in a long row of writes, which has no pause in which the store settles it.
    if count >= Self.limit {
      (log, count) = (IndexLog(log.bodyWaiting(for: count, definition), []), 0)
      if log.applyInPlace(change, definition) { return }
    }
    if let renewed = log.note(change, behind: count) { (log, count) = renewed } else { count += 1 }
    // Checked after the append, so that the background thread finds this change, too.
    if count >= Self.many { log.startApplying(definition) }
  }

  /// Returns the content of the index at this commit, after applying its pending changes.
  func body(_ definition: IndexDefinition) -> IndexBody { log.body(at: count, definition) }

  /// True if the log holds any change, even one of a write that was rolled back, because such a log keeps replaced records alive.
  var keepsChanges: Bool { log.hasChanges }

  /// Returns the same index with its changes applied and an empty log.
  ///
  /// Blocks the thread. Call it on a dispatch queue of the system.
  func settled(_ definition: IndexDefinition) -> FollowedIndex { FollowedIndex(log.bodyWaiting(for: count, definition)) }

  /// True if two indexes have the same log and see the same prefix of it.
  func isSame(as other: FollowedIndex) -> Bool { log === other.log && count == other.count }
}

/// An index and a log of later changes, shared by commits, of which each sees a prefix of the log.
private final class IndexLog: Sendable {
  private struct Contents: Sendable {
    var base: IndexBody
    var changes: [IndexChange]
    /// Index after the first `count` changes, for the two lengths that were read last: the longest, and a shorter one.
    var newest: (count: Int, body: IndexBody)?
    var older: (count: Int, body: IndexBody)?

    /// Returns the stored index with the most changes applied, but no more than `count`.
    func start(for count: Int) -> (count: Int, body: IndexBody) {
      if let newest, newest.count <= count { return newest }
      if let older, older.count <= count { return older }
      return (0, base)
    }
  }

  private let contents: Mutex<Contents>
  /// Held while many changes are applied, so that two threads do not do the same work at once.
  private let applying = Mutex(())
  // True once the background thread was started. There is one for each log.
  private let isApplying = Atomic(false)

  init(_ base: IndexBody, _ changes: [IndexChange]) {
    contents = Mutex(Contents(base: base, changes: changes))
  }

  deinit {
    let contents = contents.withLock { $0 }
    // Many changes keep many tree nodes alive, which must not be freed on the store's executor.
    if contents.changes.count >= FollowedIndex.many { DispatchQueue.global(qos: .utility).async { withExtendedLifetime(contents) {} } }
  }

  /// Appends a change after the first `count` changes.
  ///
  /// - Returns: A new log that holds the change, with its number of changes, or `nil` if this log holds it.
  func note(_ change: IndexChange, behind count: Int) -> (IndexLog, count: Int)? {
    contents.withLock { contents in
      let start = contents.start(for: count)
      // Changes beyond `count` are those of a write that was rolled back, and stay with this log. A new log also drops the applied ones.
      guard start.count > 0 || contents.changes.count != count else {
        contents.changes.append(change)
        return nil
      }
      let changes = contents.changes[start.count..<count] + [change]
      return (IndexLog(start.body, Array(changes)), changes.count)
    }
  }

  /// Applies a change directly to the base, for a caller that is the log's only owner.
  ///
  /// - Returns: False if changes are pending, and then nothing is applied.
  func applyInPlace(_ change: IndexChange, _ definition: IndexDefinition) -> Bool {
    contents.withLock { contents in
      // Applying ahead of pending changes would break their order.
      guard contents.changes.isEmpty else { return false }
      _ = definition.apply(change, to: &contents.base)
      return true
    }
  }

  /// True if the log holds a change, applied or pending.
  var hasChanges: Bool { contents.withLock { !$0.changes.isEmpty } }

  /// Returns the index after the first `count` changes, and stores it for later readers.
  func body(at count: Int, _ definition: IndexDefinition) -> IndexBody {
    let (start, changes) = contents.withLock { contents in
      let start = contents.start(for: count)
      return (start, contents.changes[start.count..<count])
    }
    if changes.isEmpty { return start.body }
    // Applied outside the lock, because other commits append to the log meanwhile.
    var body = start.body
    definition.apply(changes, to: &body)
    let applied = body
    // The displaced index is freed outside the lock: it may be the last reference to a whole tree.
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

  /// Returns the index as ``body(at:_:)`` does, after any other thread that applies many changes has finished.
  ///
  /// Blocks the thread. Call it on the store's executor, or on a dispatch queue of the system.
  func bodyWaiting(for count: Int, _ definition: IndexDefinition) -> IndexBody {
    applying.withLock { _ in body(at: count, definition) }
  }

  /// Starts a background thread that applies all changes, including those that arrive meanwhile, unless the log has started one.
  func startApplying(_ definition: IndexDefinition) {
    guard isApplying.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged else { return }
    DispatchQueue.global(qos: .utility).async {
      var applied = 0
      // `isApplying` stays set: the next append makes a new log, because this one has applied changes.
      while case let count = self.contents.withLock({ $0.changes.count }), count > applied {
        _ = self.bodyWaiting(for: count, definition)
        applied = count
      }
    }
  }
}
