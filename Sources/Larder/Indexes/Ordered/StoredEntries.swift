internal import Foundation
internal import Synchronization

/// An ordered index whose keys stay in the storage, as of one commit, with a cache of the blocks of keys that were read last.
///
/// The boundaries divide the keys into blocks of some hundred keys. Any ascending boundaries give the same answers.
final class StoredRun: Sendable {
  let id: StoredIndexID
  let order: IndexEntry.Order
  private let columns: Int
  private let base: any StoredBase
  private let contents: Mutex<Contents>
  /// Error of a record with other values than its entry, or of a damaged key.
  private let firstRefutation = Mutex<RepositoryError?>(nil)
  /// Whether ``firstRefutation`` is set, so that a query can see this without a lock.
  private let isRefuted = Atomic(false)

  private struct Contents: Sendable {
    var boundaries: [Data]?
    var blocks: [Int: [IndexEntry]] = [:]
    /// Numbers of the cached blocks, from the one that was read first on.
    var ages: [Int] = []
    var entryCount = 0
    /// Number of keys that later commits have changed in each block.
    var growth: [Int: Int] = [:]
    /// Keys that divide blocks which are too large.
    var divisions: [Int: [Data]] = [:]
    /// Blocks that are so small that they become a part of the block before.
    var joined: Set<Int> = []
    var hasNewBoundaries = false

    /// Adds a block, and drops the blocks that were read first if the cache is full.
    mutating func insert(_ entries: [IndexEntry], as number: Int, limit: Int) {
      guard blocks[number] == nil else { return }
      while entryCount + entries.count > limit, let oldest = ages.first { remove(oldest) }
      blocks[number] = entries
      ages.append(number)
      entryCount += entries.count
    }

    mutating func remove(_ number: Int) {
      guard let entries = blocks.removeValue(forKey: number) else { return }
      ages.removeAll { $0 == number }
      entryCount -= entries.count
    }

    /// Removes the changed blocks, and divides and joins blocks.
    mutating func move(_ changed: [IndexEntry], _ limit: Int) {
      guard let boundaries, !boundaries.isEmpty else { return self = Contents() }
      var keys: [Int: [Data]] = [:]
      var number = 0
      for entry in changed {
        let key = IndexKey.bytes(of: entry)
        // The entries of each tree ascend, so the next one often lies in the same block.
        if key.precedes(boundaries[number]) || number + 1 < boundaries.count && !key.precedes(boundaries[number + 1]) {
          number = StoredRun.block(of: key, in: boundaries)
        }
        keys[number, default: []].append(key)
      }
      for (number, keys) in keys {
        remove(number)
        growth[number, default: 0] += keys.count
        // The added keys lie where the block grows, so they divide it without a read of the block.
        guard growth[number, default: 0] > limit, divisions[number] == nil else { continue }
        let sorted = keys.sorted { $0.precedes($1) }
        divisions[number] = stride(from: 0, to: sorted.count, by: limit / 4).map { sorted[$0] }.filter { $0 != boundaries[number] }
      }
      if divisions.isEmpty, joined.isEmpty { return }
      // A division changes the numbers of the blocks behind it, so the cache begins anew.
      var moved = Contents(boundaries: [], hasNewBoundaries: true)
      var new: [Data] = []
      for (number, key) in boundaries.enumerated() {
        if !joined.contains(number) || divisions[number] != nil { new.append(key) }
        new += divisions[number] ?? []
        // The growth of a block that is not divided goes on to count.
        if divisions[number] == nil, let count = growth[number] { moved.growth[new.count - 1, default: 0] += count }
      }
      moved.boundaries = new
      self = moved
    }
  }

  /// Number of keys between two boundaries of a new index, and a fourth of the largest number in a block that is not divided.
  static let blockSize = 256
  /// Largest number of cached entries, each of which takes about 130 bytes.
  private static let cacheLimit = 16_384

  init(_ id: StoredIndexID, columns: Int, order: IndexEntry.Order, in base: any StoredBase) {
    (self.id, self.columns, self.order, self.base) = (id, columns, order, base)
    contents = Mutex(Contents())
  }

  /// Makes the run of a newer base.
  ///
  /// - Parameter changed: Entries that the newer base has and the old one has not, or the other way round.
  init(_ old: StoredRun, movedTo base: any StoredBase, changed: [IndexEntry]) {
    (id, columns, order, self.base) = (old.id, old.columns, old.order, base)
    var contents = old.contents.withLock { $0 }
    contents.hasNewBoundaries = false
    contents.move(changed, 4 * Self.blockSize)
    self.contents = Mutex(contents)
    if let refutation = old.refutation { refute(refutation) }
  }

  /// Boundaries that the storage should keep from now on, or `nil` if it has the boundaries of this run.
  var newBoundaries: [Data]? { contents.withLock { $0.hasNewBoundaries ? $0.boundaries : nil } }

  /// Whether the index must not be used any more.
  var isUnfit: Bool { isRefuted.load(ordering: .relaxed) }

  /// The first error that has shown that the index does not fit the records, or `nil` for a fit index.
  var refutation: RepositoryError? { isUnfit ? firstRefutation.withLock { $0 } : nil }

  /// Marks the index as one that does not fit the records.
  func refute(_ error: RepositoryError) {
    firstRefutation.withLock { first in if first == nil { first = error } }
    isRefuted.store(true, ordering: .relaxed)
  }

  // MARK: Blocks

  /// Returns the boundaries, which are read from the storage once.
  func boundaries() throws(RepositoryError) -> [Data] {
    if let known = contents.withLock({ $0.boundaries }) { return known }
    let found = try reading { () throws(RepositoryError) in
      let found = try base.boundaries(of: id)
      guard found.first?.isEmpty == true, zip(found, found.dropFirst()).allSatisfy({ $0.precedes($1) }) else { throw damaged }
      return found
    }
    return contents.withLock { contents in
      if contents.boundaries == nil { contents.boundaries = found }
      return contents.boundaries ?? found
    }
  }

  /// Returns the number of the block to which a key belongs.
  static func block(of key: Data, in boundaries: [Data]) -> Int {
    max((0..<boundaries.count).partitionPoint { key.precedes(boundaries[$0]) } - 1, 0)
  }

  /// Returns the entries of a block in order.
  func block(_ number: Int) throws(RepositoryError) -> [IndexEntry] {
    if let cached = contents.withLock({ $0.blocks[number] }) { return cached }
    let boundaries = try boundaries()
    var (entries, values, written): ([IndexEntry], [IndexValue], [UInt8]) = ([], [], [])
    let keys = try reading { () throws(RepositoryError) in
      let keys = try base.indexKeys(of: id, from: boundaries[number], below: boundary(after: number, boundaries))
      entries.reserveCapacity(keys.count)
      for key in keys {
        // A key that this version would write otherwise is damaged, although it can be read.
        guard let entry = IndexKey.entry(key, columns: columns, order, &values), IndexKey.isKey(key, of: entry, &written) else {
          throw damaged
        }
        if let last = entries.last, !(last < entry) { throw damaged }
        entries.append(entry)
      }
      return keys
    }
    let limit = 4 * Self.blockSize
    let divisions = keys.count > limit ? stride(from: Self.blockSize, to: keys.count, by: Self.blockSize).map { keys[$0] } : []
    let read = entries
    contents.withLock { contents in
      if !divisions.isEmpty { contents.divisions[number] = divisions }
      if number > 0, keys.count < Self.blockSize / 16 { contents.joined.insert(number) }
      contents.insert(read, as: number, limit: Self.cacheLimit)
    }
    return entries
  }

  private func boundary(after number: Int, _ boundaries: [Data]) -> Data? {
    number + 1 < boundaries.count ? boundaries[number + 1] : nil
  }

  /// Returns the number of keys in a range, without reading them into memory.
  func keyCount(from lower: Data, below upper: Data?) throws(RepositoryError) -> Int {
    try reading { () throws(RepositoryError) in try base.indexKeyCount(of: id, from: lower, below: upper) }
  }

  /// Reads keys, and marks the index as unfit if they are damaged or lost, so that a later query builds it anew.
  private func reading<Output>(_ body: () throws(RepositoryError) -> Output) throws(RepositoryError) -> Output {
    do throws(RepositoryError) { return try body() } catch {
      guard error.code == .corrupted || error.code == .unsupported else { throw error }
      refute(error)
      // The backend may have dropped the index after the base was made. The query then does without the index.
      throw error.code == .corrupted ? error : damaged
    }
  }

  var damaged: RepositoryError {
    RepositoryError(.corrupted, "expected ascending keys in the stored index \(id.name) of \(id.collection), found others; run verify()")
  }
}

/// The entries of an ordered index at one commit: a ``StoredRun`` of an earlier commit, and the changes since in memory.
struct StoredEntries: Sendable {
  private(set) var run: StoredRun
  /// Entries that the run does not have.
  private var added = PersistentTree<IndexEntry>()
  /// Entries of the run that were removed.
  private var removed = PersistentTree<IndexEntry>()

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
    for tree in [added, removed] { tree.forEachLeaf { changed += $0 } }
    return StoredEntries(StoredRun(run, movedTo: base, changed: changed))
  }

  /// Applies the change of a record's entry.
  mutating func replace(_ old: IndexEntry?, with new: IndexEntry?) {
    if let old, let new, old == new {
      // The key in the storage stays as it is. An entry in memory has the revision of its record, so it is replaced.
      if added.find(old) != nil { added.insert(new) }
      return
    }
    if let old, added.remove(old) == nil { removed.insert(old) }
    if let new, removed.remove(new) == nil { added.insert(new) }
  }

  // MARK: Reading

  /// Position behind the last entry.
  func end() throws(RepositoryError) -> Position { Position(block: try run.boundaries().count, offset: 0) }

  /// Returns the entries of a block at this commit.
  private func block(_ number: Int) throws(RepositoryError) -> [IndexEntry] {
    let entries = try run.block(number)
    if added.isEmpty, removed.isEmpty { return entries }
    let boundaries = try run.boundaries()
    let (lower, upper) = (boundaries[number], number + 1 < boundaries.count ? boundaries[number + 1] : nil)
    let (more, less) = (Self.ranks(in: added, from: lower, below: upper), Self.ranks(in: removed, from: lower, below: upper))
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

  /// Returns the ranks of the entries of a tree whose keys lie in a range.
  private static func ranks(in tree: PersistentTree<IndexEntry>, from lower: Data, below upper: Data?) -> Range<Int> {
    if tree.isEmpty { return 0..<0 }
    let start = tree.rank(whereFirst: { !IndexKey.bytes(of: $0).precedes(lower) })
    let end = upper.map { upper in tree.rank(whereFirst: { !IndexKey.bytes(of: $0).precedes(upper) }) } ?? tree.count
    return start..<max(start, end)
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
    return try run.keyCount(from: lower, below: upper) - Self.ranks(in: removed, from: lower, below: upper).count
      + Self.ranks(in: added, from: lower, below: upper).count
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
