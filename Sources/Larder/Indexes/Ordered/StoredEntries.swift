internal import Foundation

/// The entries of an ordered index at one commit: a ``StoredRun`` of an earlier commit, and the changes since in memory.
struct StoredEntries: Sendable {
  private(set) var run: StoredRun
  private var edits = EntryEdits()

  /// A place between two entries: a block, and the number of entries of the block before the place.
  struct Position: Comparable, Hashable, Sendable {
    var block: Int
    var offset: Int

    static func < (left: Self, right: Self) -> Bool { (left.block, left.offset) < (right.block, right.offset) }
  }

  init(_ run: StoredRun) { self.run = run }

  /// Returns the entries over a run of a newer base, which has all changes.
  func moved(to base: any StoredBase) -> StoredEntries {
    var changed: [IndexEntry] = []
    for tree in [edits.added, edits.removed] { tree.forEachLeaf { changed += $0 } }
    return StoredEntries(StoredRun(run, movedTo: base, changed: changed))
  }

  /// Applies the change of a record's entry.
  mutating func replace(_ old: IndexEntry?, with new: IndexEntry?) { edits.replace(old, with: new) }

  // MARK: Reading

  /// Position behind the last entry.
  func end() throws(RepositoryError) -> Position { Position(block: try run.boundaries().count, offset: 0) }

  /// Returns the entries of a block at this commit.
  private func block(_ number: Int) throws(RepositoryError) -> [IndexEntry] {
    let entries = try run.block(number)
    if edits.isEmpty { return entries }
    let (added, removed) = (edits.added, edits.removed)
    let boundaries = try run.boundaries()
    let (lower, upper) = (boundaries[number], number + 1 < boundaries.count ? boundaries[number + 1] : nil)
    let (more, less) = (added.ranks(from: lower, below: upper), removed.ranks(from: lower, below: upper))
    if more.isEmpty, less.isEmpty { return entries }
    var merged: [IndexEntry] = []
    merged.reserveCapacity(entries.count + more.count)
    var (next, gone): ([IndexEntry], [IndexEntry]) = ([], [])
    added.forEach(in: more) { (entry) -> Bool in
      next.append(entry)
      return true
    }
    removed.forEach(in: less) { (entry) -> Bool in
      gone.append(entry)
      return true
    }
    var (nextPosition, gonePosition) = (0, 0)
    for entry in entries {
      while nextPosition < next.count, next[nextPosition] < entry {
        merged.append(next[nextPosition])
        nextPosition += 1
      }
      while gonePosition < gone.count, gone[gonePosition] < entry { gonePosition += 1 }
      if gonePosition < gone.count, gone[gonePosition] == entry { continue }
      merged.append(entry)
    }
    return merged + next[nextPosition...]
  }

  /// Visits the keys of the records with the same values as an entry in all columns, until `body` returns `false`.
  ///
  /// Cost: one read of the keys with these values, without the block around them, and a read of the record of each visited key.
  /// - Throws: The errors of ``StoredBase/indexKeys(of:from:below:)`` and of ``record(of:among:_:)``.
  func visit(
    withValuesOf entry: IndexEntry, among records: RecordMap, _ definition: IndexDefinition, _ body: (RecordKey) -> Bool
  ) throws(RepositoryError) {
    for found in try run.entries(withValuesOf: entry) where edits.removed.find(found) == nil {
      if try records[found.slot.key] == nil {
        // A query throws this error each time. A write must be able to go on, so the index is not used any more.
        let error = RepositoryError(
          .corrupted, "expected a record for a key of \(run.id.name), found none; run verify()", keyHash: found.slot.key.hash)
        run.refute(error)
        throw error
      }
      if try !body(record(of: found, among: records, definition).key) { return }
    }
    let added = edits.added
    try added.forEach(in: added.start(of: entry.values)..<added.end(of: entry.values)) { (found) throws(RepositoryError) -> Bool in
      try body(record(of: found, among: records, definition).key)
    }
  }

  /// Returns the record of an entry.
  ///
  /// - Throws: `.corrupted` if the storage has no such record, or one with other values. An index with other values is not used any more.
  func record(of entry: IndexEntry, among records: RecordMap, _ definition: IndexDefinition) throws(RepositoryError) -> RecordSlot {
    let found = try records.resolved(entry.slot)
    guard definition.hasValues(found, of: entry) else {
      // A new version of the app may decode the record to other values. The index is then built anew.
      let error = RepositoryError(
        .corrupted,
        "expected a record with the values that \(run.id.name) holds, found others; try again, and raise the schema's version "
          + "when an indexed property changes its meaning",
        keyHash: entry.slot.key.hash)
      run.refute(error)
      throw error
    }
    return found
  }

  /// Returns the position of the first entry whose values begin with a prefix, or the position at which such an entry would be inserted.
  func start(of prefix: [IndexValue]) throws(RepositoryError) -> Position {
    if prefix.isEmpty { return Position(block: 0, offset: 0) }
    return try position(at: IndexKey.bytes(prefix, run.order), orIn: nil) { $0.compared(to: prefix) != .orderedAscending }
  }

  /// Returns the position directly after the last entry whose values begin with a prefix.
  func end(of prefix: [IndexValue]) throws(RepositoryError) -> Position {
    if prefix.isEmpty { return try end() }
    let bytes = IndexKey.bytes(prefix, run.order)
    return try position(at: bytes, orIn: bytes) { $0.compared(to: prefix) == .orderedDescending }
  }

  /// Returns the position of the first entry at or after the values of all columns and a record key.
  func position(of values: [IndexValue], _ key: RecordKey) throws(RepositoryError) -> Position {
    let order = run.order
    return try position(at: IndexKey.bytes(values, order, key: key), orIn: nil) { entry in
      switch entry.compared(to: values) {
      case .orderedAscending: false
      case .orderedDescending: true
      case .orderedSame: !order.keys.isBefore(entry.slot.key, key)
      }
    }
  }

  /// Returns the position of the first entry that meets a monotone condition, in the last block that begins at or before some bytes.
  ///
  /// - Parameter prefix: A block whose boundary begins with these bytes counts as one that begins before.
  private func position(
    at bytes: Data, orIn prefix: Data?, whereFirst isMet: (IndexEntry) -> Bool
  ) throws(RepositoryError) -> Position {
    let boundaries = try run.boundaries()
    let number = (0..<boundaries.count).partitionPoint { index in
      bytes.precedes(boundaries[index]) && !(prefix.map { boundaries[index].starts(with: $0) } ?? false)
    }
    let entries = try block(max(number - 1, 0))
    return Position(block: max(number - 1, 0), offset: (0..<entries.count).partitionPoint { isMet(entries[$0]) })
  }

  /// Visits the entries of a range in order or in reverse, until `body` returns `false`.
  ///
  /// - Returns: False if `body` returned `false`.
  @discardableResult
  func forEach(
    in range: Range<Position>, reversed: Bool = false, _ body: (IndexEntry) throws(RepositoryError) -> Bool
  ) throws(RepositoryError) -> Bool {
    let last = min(range.upperBound.block, try run.boundaries().count - 1)
    guard range.lowerBound.block <= last else { return true }
    var number = reversed ? last : range.lowerBound.block
    while number >= range.lowerBound.block, number <= last {
      let entries = try block(number)
      let start = number == range.lowerBound.block ? range.lowerBound.offset : 0
      let end = number == range.upperBound.block ? min(range.upperBound.offset, entries.count) : entries.count
      if start < end {
        if reversed {
          for position in (start..<end).reversed() { if try !body(entries[position]) { return false } }
        } else {
          for position in start..<end { if try !body(entries[position]) { return false } }
        }
      }
      number += reversed ? -1 : 1
    }
    return true
  }

  /// Visits the first entry of each group of entries with equal first values, with the number of the group's entries.
  func forEachGroup(_ body: (IndexEntry, Int) throws(RepositoryError) -> Void) throws(RepositoryError) {
    var position = Position(block: 0, offset: 0)
    while true {
      var first: IndexEntry?
      try forEach(in: position..<end()) { (entry) throws(RepositoryError) -> Bool in
        first = entry
        return false
      }
      guard let first else { return }
      let next = try end(of: [first.value(0)])
      guard position < next else { throw run.damaged }
      try body(first, count(position..<next))
      position = next
    }
  }

  /// Returns an estimate of the number of entries in a range, for an index of `total` entries.
  func estimate(_ range: Range<Position>, of total: Int) throws(RepositoryError) -> Int {
    let (lower, upper) = (range.lowerBound, range.upperBound)
    if lower.block == upper.block { return upper.offset - lower.offset }
    let average = max(total / max(try run.boundaries().count, 1), 1)
    return max(average - lower.offset, 0) + (upper.block - lower.block - 1) * average + upper.offset
  }

  /// Returns the number of entries in a range.
  func count(_ range: Range<Position>) throws(RepositoryError) -> Int {
    guard !range.isEmpty, let lower = try key(at: range.lowerBound) else { return 0 }
    let upper = try key(at: range.upperBound)
    return try run.keyCount(from: lower, below: upper) - edits.removed.ranks(from: lower, below: upper).count
      + edits.added.ranks(from: lower, below: upper).count
  }

  /// Returns a key that no entry before a position reaches and every entry behind it does, or `nil` for the end of the index.
  private func key(at position: Position) throws(RepositoryError) -> Data? {
    let boundaries = try run.boundaries()
    guard position.block < boundaries.count else { return nil }
    let entries = try block(position.block)
    if position.offset < entries.count { return IndexKey.bytes(of: entries[position.offset]) }
    return position.block + 1 < boundaries.count ? boundaries[position.block + 1] : nil
  }
}
