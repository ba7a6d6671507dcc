internal import Dispatch
internal import Synchronization

/// The content of an index, as far as there is any.
enum IndexBody: Sendable {
  /// No query has needed the index yet.
  case absent
  /// The index is being built from an earlier state; what has changed since is applied to it at the end.
  case building([IndexChange])
  /// The index is built, and what has changed since is applied to it when somebody asks; see ``FollowedIndex``.
  case followed(FollowedIndex)
  case ordered(PersistentTree<IndexEntry>)
  case geo(GeoIndex)
  case text(TextIndex)

  /// Whether queries can use the index.
  var isBuilt: Bool {
    switch self {
    case .absent, .building: false
    case .followed, .ordered, .geo, .text: true
    }
  }
}

/// A change of one record, as indexes follow it: what it was, and what it is now.
struct IndexChange: Sendable {
  let old: RecordSlot?
  let new: RecordSlot?
}

extension IndexDefinition {
  /// Follows changes of records in their order.
  func apply(_ changes: some Collection<IndexChange>, to body: inout IndexBody) {
    if case .text(var text) = body {
      body = .absent
      text.apply(changes.lazy.map { TextChange($0, self) })
      body = .text(text)
    } else {
      for change in changes { _ = apply(change, to: &body) }
    }
  }

  /// Follows a change of one record in an index that is built.
  /// - Returns: Whether the index is unique and holds the new values for another record, too.
  func apply(_ change: IndexChange, to body: inout IndexBody) -> Bool {
    let (old, new) = (change.old, change.new)
    var isContested = false
    switch body {
    case .absent, .building, .followed:
      break
    case .ordered(var tree):
      // Taken out of the body while it is changed, so that it has one owner and changes in place.
      body = .absent
      let (before, after) = (old.flatMap(entry), new.flatMap(entry))
      // Where the values are the same, the new entry takes the place of the old one.
      let isMoved = before != after
      if let before, isMoved, tree.remove(before) == nil { tree.sweep(before.slot.key) }
      if let after {
        if isUnique, isMoved {
          // Entries with the same values lie side by side. The first of them came alone, so it is enough to look when the second one comes.
          let (left, right) = tree.neighbours(of: after)
          isContested = (left?.hasValues(of: after) == true || right?.hasValues(of: after) == true) && !after.hasNull
        }
        // The same values as before, which nevertheless were not there: the record had others when the index was made.
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

/// An index at one commit: what was built, and the changes since then that it has to follow.
///
/// A commit only notes its changes, so that a write does not wait for indexes. They are applied by whoever asks for the content, once for
/// all that ask; in the background where many wait, some together, which costs less than one by one; and by the store in a pause, when
/// ``settled(_:)`` lets go of them and of the records that were replaced. Their number is limited: at last a write applies them itself.
struct FollowedIndex: Sendable {
  private var log: IndexLog
  /// The number of the log's changes that belong to this commit.
  private var count: Int

  /// Takes an index that is built.
  init(_ body: IndexBody) { (log, count) = (IndexLog(body, []), 0) }

  /// The number of changes from which they are applied in the background.
  static let many = 64
  /// The number of changes that may wait: a read applies them on its own thread, and never suspends for them.
  private static let limit = 512

  /// Follows a change of one record.
  ///
  /// Cost: a note, mostly.
  mutating func follow(_ change: IndexChange, _ definition: IndexDefinition) {
    // Many changes of one commit have the log to themselves once it was applied: they go into the index at once.
    if isKnownUniquelyReferenced(&log), log.applyInPlace(change, definition) { return }
    if count >= Self.limit {
      (log, count) = (IndexLog(log.bodyWaiting(for: count, definition), []), 0)
      if log.applyInPlace(change, definition) { return }
    }
    if let renewed = log.note(change, behind: count) { (log, count) = renewed } else { count += 1 }
    if count >= Self.many { log.startApplying(definition) }
  }

  /// Returns the content of the index at this commit.
  func body(_ definition: IndexDefinition) -> IndexBody { log.body(at: count, definition) }

  /// Whether it keeps changes, be it those of a write that was taken back, and with them the records that they have replaced.
  var keepsChanges: Bool { log.hasChanges }

  /// Returns the index without the changes that it has followed.
  ///
  /// Blocks the thread: for a queue of the system's.
  func settled(_ definition: IndexDefinition) -> FollowedIndex { FollowedIndex(log.bodyWaiting(for: count, definition)) }

  /// Whether both have followed the same changes.
  func isSame(as other: FollowedIndex) -> Bool { log === other.log && count == other.count }
}

/// A built index and the changes that followed, shared by the commits that noted them: each has the first so many.
private final class IndexLog: Sendable {
  private struct Contents: Sendable {
    var base: IndexBody
    var changes: [IndexChange]
    /// The index after the first so many changes: the newest that was asked for, and an older one that was asked for after that.
    var newest: (count: Int, body: IndexBody)?
    var older: (count: Int, body: IndexBody)?

    /// Returns the changed index that is nearest before a number of changes.
    func start(for count: Int) -> (count: Int, body: IndexBody) {
      if let newest, newest.count <= count { return newest }
      if let older, older.count <= count { return older }
      return (0, base)
    }
  }

  private let contents: Mutex<Contents>
  /// Held by who applies many changes, so that nobody else does the same meanwhile.
  private let applying = Mutex(())
  private let isApplying = Atomic(false)

  init(_ base: IndexBody, _ changes: [IndexChange]) {
    contents = Mutex(Contents(base: base, changes: changes))
  }

  deinit {
    let contents = contents.withLock { $0 }
    // What many changes have replaced is many nodes of a tree, which are not to be freed on the store's executor.
    if contents.changes.count >= FollowedIndex.many { DispatchQueue.global(qos: .utility).async { withExtendedLifetime(contents) {} } }
  }

  /// Notes a change behind the first so many.
  /// - Returns: The log that has the change instead of this one, with the number of its changes; `nil` when this one has it.
  func note(_ change: IndexChange, behind count: Int) -> (IndexLog, count: Int)? {
    contents.withLock { contents in
      let start = contents.start(for: count)
      // Others noted behind them by a write that was taken back are left to it; and what was applied need not be kept.
      guard start.count > 0 || contents.changes.count != count else {
        contents.changes.append(change)
        return nil
      }
      let changes = contents.changes[start.count..<count] + [change]
      return (IndexLog(start.body, Array(changes)), changes.count)
    }
  }

  /// Applies a change where none waits, for the only one who has the log.
  /// - Returns: Whether it was applied.
  func applyInPlace(_ change: IndexChange, _ definition: IndexDefinition) -> Bool {
    contents.withLock { contents in
      guard contents.changes.isEmpty else { return false }
      _ = definition.apply(change, to: &contents.base)
      return true
    }
  }

  var hasChanges: Bool { contents.withLock { !$0.changes.isEmpty } }

  /// Returns the index after the first so many changes, and keeps it for the next who asks.
  func body(at count: Int, _ definition: IndexDefinition) -> IndexBody {
    let (start, changes) = contents.withLock { contents in
      let start = contents.start(for: count)
      return (start, contents.changes[start.count..<count])
    }
    if changes.isEmpty { return start.body }
    var body = start.body
    definition.apply(changes, to: &body)
    let applied = body
    // What is displaced is let go of outside the lock: a tree may be the last of its kind.
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

  /// Returns the index as ``body(at:_:)`` does, after who else applies many changes has done so.
  ///
  /// Blocks the thread: for the store's executor, or a queue of the system's.
  func bodyWaiting(for count: Int, _ definition: IndexDefinition) -> IndexBody {
    applying.withLock { _ in body(at: count, definition) }
  }

  /// Applies the changes in the background, and those that come meanwhile, unless that is being done.
  func startApplying(_ definition: IndexDefinition) {
    guard isApplying.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged else { return }
    DispatchQueue.global(qos: .utility).async {
      var applied = 0
      // The next change after these makes a log of its own.
      while case let count = self.contents.withLock({ $0.changes.count }), count > applied {
        _ = self.bodyWaiting(for: count, definition)
        applied = count
      }
    }
  }
}
