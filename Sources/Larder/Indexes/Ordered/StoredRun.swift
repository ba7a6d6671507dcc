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
  /// Whether ``countRefutation()`` was called.
  private let isCounted: Atomic<Bool>

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

  init(_ id: StoredIndexID, _ definition: IndexDefinition, in base: any StoredBase) {
    (self.id, columns, order, self.base) = (id, definition.columns.count, definition.order, base)
    contents = Mutex(Contents())
    isCounted = Atomic(false)
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
    isCounted = Atomic(old.isCounted.load(ordering: .relaxed))
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

  /// Returns the error that has refuted the index, once.
  ///
  /// A write that builds the index in memory may be refused and taken back, and the next one finds the same index again.
  func countRefutation() -> RepositoryError? {
    guard let refutation, !isCounted.exchange(true, ordering: .relaxed) else { return nil }
    return refutation
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
    let (keys, entries) = try read(from: boundaries[number], below: boundary(after: number, boundaries))
    let limit = 4 * Self.blockSize
    let divisions = keys.count > limit ? stride(from: Self.blockSize, to: keys.count, by: Self.blockSize).map { keys[$0] } : []
    contents.withLock { contents in
      if !divisions.isEmpty { contents.divisions[number] = divisions }
      if number > 0, keys.count < Self.blockSize / 16 { contents.joined.insert(number) }
      contents.insert(entries, as: number, limit: Self.cacheLimit)
    }
    return entries
  }

  /// Returns true if another key has the values of one of the given keys of this index, without `nil` among them.
  ///
  /// Cost: one read of each block that has one of the keys, because the keys are sorted first.
  /// - Throws: The errors of ``StoredBase/indexKeys(of:from:below:)``. `.corrupted` for bytes that are no key of the index.
  func hasDuplicate(among keys: [Data]) throws(RepositoryError) -> Bool {
    let boundaries = try boundaries()
    for key in keys.sorted(by: { $0.precedes($1) }) {
      guard let entry = IndexKey.entry(key, columns: columns, order) else { throw damaged }
      if entry.hasNull { continue }
      // The keys with equal values are neighbours, and may lie in several blocks.
      let values = IndexKey.bytes(entry.values, order)
      let last = IndexKey.end(ofPrefix: values).map { Self.block(of: $0, in: boundaries) } ?? boundaries.count - 1
      var count = 0
      for number in Self.block(of: values, in: boundaries)...last { count += try block(number).count { $0.hasValues(of: entry) } }
      if count == 0 { throw damaged }
      if count > 1 { return true }
    }
    return false
  }

  /// Returns the entries with the same values as a given one, without the cache.
  func entries(withValuesOf entry: IndexEntry) throws(RepositoryError) -> [IndexEntry] {
    let lower = IndexKey.bytes(entry.values, order)
    return try read(from: lower, below: IndexKey.end(ofPrefix: lower)).entries
  }

  private func read(from lower: Data, below upper: Data?) throws(RepositoryError) -> (keys: [Data], entries: [IndexEntry]) {
    try reading { () throws(RepositoryError) in
      let keys = try base.indexKeys(of: id, from: lower, below: upper)
      var (entries, values, written): ([IndexEntry], [IndexValue], [UInt8]) = ([], [], [])
      entries.reserveCapacity(keys.count)
      for key in keys {
        // A key that this version would write otherwise is damaged, although it can be read.
        guard let entry = IndexKey.entry(key, columns: columns, order, &values), IndexKey.isKey(key, of: entry, &written) else {
          throw damaged
        }
        if let last = entries.last, !(last < entry) { throw damaged }
        entries.append(entry)
      }
      return (keys, entries)
    }
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
