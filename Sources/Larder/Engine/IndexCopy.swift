internal import Foundation
internal import Synchronization

/// An index that is being written to the storage, and the part of it that the storage has.
///
/// The keys come from the index in memory, or from keys that were sorted as of an earlier commit. Each commit changes the part that the
/// storage has. The keys behind this part are written later, with all changes until then.
final class IndexCopy: Sendable {
  let id: StoredIndexID
  let collection: Int
  let index: Int
  /// The keys as of the commit at which the index's log of changes began, or `nil` to copy the index in memory.
  private let sorted: SortedKeys?
  private let progress = Mutex(Progress())

  private struct Progress: Sendable {
    var end: Data?
    var count = 0
    var boundaries = [Data()]
    var isGivenUp = false
    var isUsed = false
    /// Number of times that the copy has begun anew.
    var restarts = 0
    /// The sorted keys behind `end`, or `nil` before the first of them is read.
    var stream: KeyStream?
    /// The changes of the sorted keys since the log began.
    var edits = EntryEdits()
    /// The last entry of a unique index that was passed to the storage.
    var last: IndexEntry?
  }

  init(_ id: StoredIndexID, collection: Int, index: Int, sorted: SortedKeys? = nil) {
    (self.id, self.collection, self.index, self.sorted) = (id, collection, index, sorted)
  }

  var isSorted: Bool { sorted != nil }
  /// The last copied key, or `nil` before the first transaction.
  var end: Data? { progress.withLock { $0.end } }
  var boundaries: [Data] { progress.withLock { $0.boundaries } }
  /// Whether the copy has ended without a complete index, for example because the storage cannot hold the entry of a record.
  var isGivenUp: Bool { progress.withLock { $0.isGivenUp } }
  /// Whether the collection uses the complete index in the storage.
  var isUsed: Bool { progress.withLock { $0.isUsed } }

  func giveUp() { progress.withLock { $0.isGivenUp = true } }
  func markUsed() { progress.withLock { $0.isUsed = true } }

  /// Begins the copy anew, at most three times.
  ///
  /// - Returns: False if the copy cannot go on.
  func restart() -> Bool {
    progress.withLock { progress in
      guard progress.end != nil, progress.restarts < 3, !progress.isGivenUp else { return false }
      progress = Progress(restarts: progress.restarts + 1, edits: progress.edits)
      return true
    }
  }

  /// Adds keys that were copied.
  func append(_ keys: [Data]) {
    progress.withLock { progress in
      for key in keys {
        if progress.count > 0, progress.count.isMultiple(of: StoredRun.blockSize) { progress.boundaries.append(key) }
        progress.count += 1
      }
      progress.end = keys.last ?? progress.end ?? Data()
    }
  }
}

/// Copies of sorted keys.
extension IndexCopy {
  /// Applies changes of records to the sorted keys.
  ///
  /// - Returns: False if the index must be built in memory, because the storage cannot hold the key of a record, or because two records may
  ///   be equal in a unique index.
  func follow(_ log: ChangeLog, _ definition: IndexDefinition) -> Bool {
    progress.withLock { progress in
      log.forEach { change in
        guard let edit = StoredEdit(change, definition, stubs: change.stubs) else { return false }
        if definition.isUnique, let after = edit.after, !after.hasNull, edit.before?.hasValues(of: after) != true {
          // A commit has passed the key to the storage, and only the keys behind it are compared with each other.
          if let end = progress.end, !end.precedes(IndexKey.bytes(of: after)) { return false }
        }
        progress.edits.replace(edit.before, with: edit.after)
        return true
      }
    }
  }

  /// Returns the keys behind ``end``, with the changes of ``follow(_:_:)``, or no keys if the storage has all of them.
  ///
  /// - Returns: `nil` if two records are equal in a unique index.
  /// - Throws: The errors of reading a scratch file.
  func nextKeys(_ count: Int, _ definition: IndexDefinition) throws(RepositoryError) -> [Data]? {
    try progress.withLock { (progress) throws(RepositoryError) in
      var stream = progress.stream
      // The stream has one owner while it moves on, so that its buffers are not copied.
      progress.stream = nil
      if stream == nil { stream = try sorted?.stream() }
      var added = EntryCursor(progress.edits.added, behind: progress.end)
      var removed = EntryCursor(progress.edits.removed, behind: progress.end)
      var keys: [Data] = []
      while keys.count < count {
        let key = stream?.next
        if let new = added.key, key.map({ new.precedes($0) }) ?? true {
          keys.append(new)
          added.advance()
          continue
        }
        guard let key else { break }
        try stream?.advance()
        while let gone = removed.key, gone.precedes(key) { removed.advance() }
        if removed.key != key { keys.append(key) }
      }
      progress.stream = stream
      guard definition.isUnique else { return keys }
      for key in keys {
        guard let entry = IndexKey.entry(key, columns: definition.columns.count, definition.order) else { return nil }
        if let last = progress.last, !entry.hasNull, last.hasValues(of: entry) { return nil }
        progress.last = entry
      }
      return keys
    }
  }
}

/// A place in a tree of entries.
private struct EntryCursor {
  private let tree: PersistentTree<IndexEntry>
  private var rank: Int
  /// Key of the entry at this place, or `nil` behind the last entry.
  private(set) var key: Data?

  /// Goes to the first entry behind a key, or to the first entry of the tree.
  init(_ tree: PersistentTree<IndexEntry>, behind end: Data?) {
    self.tree = tree
    rank = end.map { end in tree.rank(whereFirst: { end.precedes(IndexKey.bytes(of: $0)) }) } ?? 0
    key = rank < tree.count ? IndexKey.bytes(of: tree.entry(at: rank)) : nil
  }

  mutating func advance() {
    rank += 1
    key = rank < tree.count ? IndexKey.bytes(of: tree.entry(at: rank)) : nil
  }
}
