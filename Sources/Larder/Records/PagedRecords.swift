internal import Synchronization

/// The records of a collection at one commit, read from the storage through a ``StoredBase``, with a cache of the records read last.
final class PagedRecords: Sendable {
  let collection: String
  let base: any StoredBase
  private let limits: StoreOptions.Limits
  private let cache: SlotCache
  /// Records that are not known to decode, or `nil` before every record was tried.
  ///
  /// A record that a change in memory has hidden from that pass is in the list as a stub.
  private let doubtful: Mutex<[RecordSlot]?>
  /// Number of records of the first block of a walk, which a page of a query mostly needs, and of each later block.
  private static let (firstBlock, laterBlock) = (64, 1_024)

  init(_ collection: String, in base: any StoredBase, limits: StoreOptions.Limits, cache: ByteCount) {
    (self.collection, self.base, self.limits) = (collection, base, limits)
    self.cache = SlotCache(limit: cache.bytes)
    doubtful = Mutex(nil)
  }

  /// Makes the records of another base, with an empty cache of the same size.
  convenience init(_ old: PagedRecords, in base: any StoredBase) {
    self.init(old.collection, in: base, limits: old.limits, cache: .bytes(old.cacheSize))
  }

  /// Makes the records of a newer base, to which the cache of the old records moves without the records that have changed.
  ///
  /// - Parameter unread: Changed records that are not known to decode.
  init(_ old: PagedRecords, movedTo base: any StoredBase, without isChanged: (RecordKey) -> Bool, unread: [RecordSlot]) {
    (collection, self.base, limits) = (old.collection, base, old.limits)
    cache = SlotCache(takingOver: old.cache, without: isChanged)
    let left = old.doubtful.withLock { $0 }.map { list in
      list.filter { !isChanged($0.key) } + unread.map { $0.reading == .untouched ? $0.stub : $0 }
    }
    doubtful = Mutex(left.flatMap { $0.count <= Self.doubtfulLimit ? $0 : nil })
  }

  /// Largest number of records in the list of those that are not known to decode.
  ///
  /// With more, the list is dropped, and each count of all records tries every record again.
  private static let doubtfulLimit = 4_096

  /// Number of the commit whose records these are.
  var commit: Revision { base.commit }
  /// Size of the cache in bytes.
  var cacheSize: Int { cache.limit }

  /// Returns the slot (the record's object in memory) of a key, or `nil` if the storage has no record with this key.
  ///
  /// - Throws: The errors of ``StoredBase/records(_:of:)``.
  func slot(for key: RecordKey) throws(RepositoryError) -> RecordSlot? {
    if let slot = cache[key] { return slot }
    guard let found = try base.records([key], of: collection).first, let record = found else { return nil }
    return slot(of: record).map(cache.insertIfAbsent)
  }

  /// Whether half of the cache holds some records, so that none of them is evicted before its use.
  func canPrefetch(_ count: Int, size: Int) -> Bool { count * RecordSlot.overhead + 2 * size <= cache.limit / 2 }

  /// Reads records into the cache.
  func prefetch(_ keys: [RecordKey]) throws(RepositoryError) {
    let missing = keys.filter { cache[$0] == nil }
    // The stored values may be longer than the new ones, so few of them are read at once.
    for start in stride(from: 0, to: missing.count, by: Self.firstBlock) {
      let part = Array(missing[start..<min(start + Self.firstBlock, missing.count)])
      for case let record? in try base.records(part, of: collection) { _ = slot(of: record).map(cache.insertIfAbsent) }
    }
  }

  /// Whether the cache has the record of a key.
  func isCached(_ key: RecordKey) -> Bool { cache[key] != nil }

  private func slot(of record: StoredRecord) -> RecordSlot? {
    record.value.map { RecordSlot.loaded(record, $0, limits).0 }
  }

  /// Visits the records in the order of the bytes of their keys until `body` returns `false`, beginning after a key if one is given.
  ///
  /// The visited records are not kept in the cache, because one walk over many records would replace every record of the cache.
  /// - Returns: False if `body` returned `false`.
  /// - Throws: The errors of ``StoredBase/records(of:after:limit:)``.
  @discardableResult
  func forEach(after start: RecordKey? = nil, _ body: (RecordSlot) -> Bool) throws(RepositoryError) -> Bool {
    var (last, limit) = (start, Self.firstBlock)
    while true {
      let records = try base.records(of: collection, after: last, limit: limit)
      guard let end = records.last?.key else { return true }
      // A backend whose blocks do not ascend would make this loop endless.
      if let last, !(last < end) { throw .disorder(in: collection, at: end) }
      for record in records { if let slot = slot(of: record), !body(slot) { return false } }
      (last, limit) = (end, Self.laterBlock)
    }
  }

  /// Largest number of records that ``forEachDoubtful(unless:_:)`` visits.
  var doubtfulCount: Int? { doubtful.withLock { $0?.count } }

  /// Visits the records that are not known to decode, except hidden ones.
  ///
  /// `visit` must decode each record, so that later calls skip it.
  ///
  /// Cost: the first call reads every record. A later call reads the records that did not decode.
  func forEachDoubtful(unless isHidden: (RecordKey) -> Bool, _ visit: (RecordSlot) -> Void) throws(RepositoryError) {
    var left: [RecordSlot] = []
    var isComplete = true
    func note(_ slot: RecordSlot) {
      switch slot.reading {
      case .readable: break
      case .unreadable: left.append(slot)
      case .untouched: isComplete = false
      }
    }
    if let known = doubtful.withLock({ $0 }) {
      for slot in known {
        // A hidden record may be visible in an older snapshot of the same base, so it stays in the list.
        if isHidden(slot.key) {
          left.append(slot)
        } else if let found = slot.isStub ? try self.slot(for: slot.key) : slot {
          visit(found)
          note(found)
        }
      }
    } else {
      try forEach { slot in
        if isHidden(slot.key) {
          left.append(slot.stub)
        } else {
          visit(slot)
          note(slot)
        }
        return true
      }
    }
    // Two passes may end at the same time. The shorter list is kept, because a record that has decoded stays decoded.
    if isComplete, left.count <= Self.doubtfulLimit { doubtful.withLock { if left.count < $0?.count ?? .max { $0 = left } } }
  }
}

extension RepositoryError {
  /// Returns the error for a storage whose records are not in the order of their keys.
  static func disorder(in collection: String, at key: RecordKey) -> RepositoryError {
    RepositoryError(.corrupted, "expected ascending keys in \(collection), found one out of order; run verify()", keyHash: key.hash)
  }
}

/// A cache of records in memory, bounded by an estimate of their memory, which evicts records that were not used for long (CLOCK).
///
/// The keys are divided into shards with a lock each, so that readers on several cores seldom wait for each other.
final class SlotCache: Sendable {
  /// Largest sum of the records' costs.
  let limit: Int
  private let shards: [Locked]

  private final class Locked: Sendable {
    let shard: Mutex<Shard>
    init(limit: Int) { shard = Mutex(Shard(limit: limit)) }
  }

  private static let shardCount = 16

  init(limit: Int) {
    self.limit = limit
    shards = (0..<Self.shardCount).map { _ in Locked(limit: limit / Self.shardCount) }
  }

  /// Takes over the records of another cache, which keeps no record from then on, without the records that have changed.
  ///
  /// The old cache belongs to an old commit, which only old snapshots read. If it stayed as large, each old snapshot would add a cache.
  convenience init(takingOver old: SlotCache, without isChanged: (RecordKey) -> Bool) {
    self.init(limit: old.limit)
    for (shard, old) in zip(shards, old.shards) {
      let entries = old.shard.withLock { $0.close() }
      shard.shard.withLock { shard in for entry in entries where !isChanged(entry.key) { _ = shard.insertIfAbsent(entry) } }
    }
  }

  private func shard(of key: RecordKey) -> Locked { shards[Int(truncatingIfNeeded: key.tableHash % UInt64(Self.shardCount))] }

  /// The cached record of a key, or `nil` if the record is not in the cache.
  subscript(key: RecordKey) -> RecordSlot? { shard(of: key).shard.withLock { $0.use(key) } }

  /// Adds a record unless the cache has a record of the same key, and evicts other records if the cache is full.
  ///
  /// - Returns: The record of the cache, or the given one if it does not fit.
  func insertIfAbsent(_ slot: RecordSlot) -> RecordSlot {
    // The evicted records are released after the lock, because freeing a decoded value may take long.
    let (slot, evicted) = shard(of: slot.key).shard.withLock { $0.insertIfAbsent(slot) }
    withExtendedLifetime(evicted) {}
    return slot
  }

  private struct Shard: Sendable {
    private struct Entry: Sendable {
      let slot: RecordSlot
      /// Whether the record was read since the hand of the clock last passed it.
      var isUsed: Bool
    }

    private var limit: Int
    private var cost = 0
    private var entries: [Entry] = []
    private var positions: [RecordKey: Int] = [:]
    private var hand = 0

    init(limit: Int) { self.limit = limit }

    mutating func use(_ key: RecordKey) -> RecordSlot? {
      guard let position = positions[key] else { return nil }
      entries[position].isUsed = true
      return entries[position].slot
    }

    mutating func insertIfAbsent(_ slot: RecordSlot) -> (slot: RecordSlot, evicted: [RecordSlot]) {
      if let present = use(slot.key) { return (present, []) }
      guard slot.cost <= limit else { return (slot, []) }
      var evicted: [RecordSlot] = []
      while cost + slot.cost > limit { evicted.append(evict()) }
      cost += slot.cost
      positions[slot.key] = entries.count
      // A new record is not marked as used, so that a record that is read once is evicted before a record that is read again.
      entries.append(Entry(slot: slot, isUsed: false))
      return (slot, evicted)
    }

    private mutating func evict() -> RecordSlot {
      while true {
        // The last record is the newest one. The removal puts it under the hand, so the hand moves on before the next eviction.
        if hand >= entries.count - 1 { hand = 0 }
        defer { hand += 1 }
        guard entries[hand].isUsed else { return remove(at: hand) }
        entries[hand].isUsed = false
      }
    }

    private mutating func remove(at position: Int) -> RecordSlot {
      let slot = entries[position].slot
      let last = entries.removeLast()
      // The last record takes the place of the removed one, so that the array has no gaps.
      if position < entries.count {
        entries[position] = last
        positions[last.slot.key] = position
      }
      positions[slot.key] = nil
      cost -= slot.cost
      return slot
    }

    /// Empties the shard, which then accepts no further record, and returns its records.
    mutating func close() -> [RecordSlot] {
      defer { self = Shard(limit: 0) }
      return entries.map(\.slot)
    }
  }
}
