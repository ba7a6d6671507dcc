// Records/ holds the forms of a record in memory: its key, its encoded bytes, the slot (an object) that decodes them on first use, and the
// map of all records of a collection.
// Invariant: a record that does not decode keeps its bytes, and prevents no other record from being read.
// Called by Indexes, Query, Engine and migrations.

internal import Synchronization

/// The records of a collection at one commit, as a value whose copies share memory.
///
/// A map has a base (``RecordBase``), an immutable set of records that was made at opening or by a rebase. Over the base, a map has a
/// persistent tree of the later changes, called the overlay. Copying a map takes constant time. Changing a record costs O(log n) in the
/// number of changes in the overlay.
struct RecordMap: Sendable {
  private var storage: Storage

  /// The contents of a map behind one reference, so that copying the published state costs one retain.
  ///
  /// The class is `@unchecked Sendable` although its properties change. A map changes the properties only while it holds the only reference
  /// to its storage, and copies the storage otherwise.
  private final class Storage: @unchecked Sendable {
    let base: RecordBase
    /// The changes since the base was made, by key: a slot (a record in memory), or `nil` for a record of the base that was deleted.
    ///
    /// `@exclusivity(unchecked)` turns off the runtime check for overlapping accesses, which every look-up would pay for. Accesses cannot
    /// overlap, because only methods of the map use the tree, and no such method calls another one during its access.
    @exclusivity(unchecked) var overlay = RecordTree()
    var count: Int
    /// Records in the overlay (the tree of changes) that are not known to decode.
    var unchecked = UncheckedRecords.none
    /// Estimate of the memory of the records in the overlay, counted only over a base whose records stay in the storage.
    var changeCost = 0
    var newestSchemaVersion: Int
    var oldestSchemaVersion: Int

    init(_ base: RecordBase) {
      self.base = base
      count = base.count
      newestSchemaVersion = base.newestSchemaVersion
      oldestSchemaVersion = base.oldestSchemaVersion
    }

    init(_ other: Storage) {
      base = other.base
      overlay = other.overlay
      count = other.count
      unchecked = other.unchecked
      changeCost = other.changeCost
      newestSchemaVersion = other.newestSchemaVersion
      oldestSchemaVersion = other.oldestSchemaVersion
    }

    static let empty = Storage(.empty)
  }

  init(_ slots: [RecordSlot] = []) { storage = slots.isEmpty ? .empty : Storage(RecordBase(slots)) }

  /// Makes a map of packs, the blocks of records that a backend has read.
  init(_ packs: [RecordPack]) { storage = packs.isEmpty ? .empty : Storage(.of(packs)) }

  /// Makes a map of records that stay in the storage, of which the backend knows the number and the schema versions.
  init(_ paged: PagedRecords, count: Int, versions: (oldest: Int, newest: Int)) {
    storage = Storage(RecordBase(paged, count: count, versions: versions))
  }

  var base: RecordBase { storage.base }
  /// The changes since the base was made.
  var overlay: RecordTree { storage.overlay }
  /// Records in the overlay (the tree of changes) that are not known to decode.
  var unchecked: UncheckedRecords { storage.unchecked }

  var count: Int { storage.count }
  /// Upper bound of the schema versions of the records, or 0 if the map has never had a record.
  var newestSchemaVersion: Int { storage.newestSchemaVersion }
  /// Lower bound of the schema versions of the records, or the largest integer if the map has never had a record.
  var oldestSchemaVersion: Int { storage.oldestSchemaVersion }

  /// Whether the records stay in the storage, so that a read of a record that is not in the cache reads the storage.
  var isPaged: Bool { base.paged != nil }

  /// Whether a look-up of a key has to read the storage.
  func mustRead(_ key: RecordKey) -> Bool {
    guard let paged = base.paged else { return false }
    return storage.overlay[key] == nil && !paged.isCached(key)
  }

  subscript(key: RecordKey) -> RecordSlot? {
    get throws(RepositoryError) {
      // An empty overlay (the tree of changes), as after opening, is skipped, so that a look-up hashes the key once and not twice.
      if !storage.overlay.isEmpty, let change = storage.overlay[key] { return change }
      return try storage.base.slot(for: key)
    }
  }

  /// Reads the records of the first of some keys into the cache, in the order of the keys, in which the storage reads each page once.
  ///
  /// - Parameter records: Keys, each with the length of the value that its record probably has.
  /// - Returns: The number of keys whose records fit into the cache together, and at least 1.
  /// - Throws: The errors of ``StoredBase/records(_:of:)``.
  func prefetch(_ records: some Sequence<(key: RecordKey, size: Int)>) throws(RepositoryError) -> Int {
    guard let paged = base.paged else { return 1 }
    var (keys, size): ([RecordKey], Int) = ([], 0)
    for record in records {
      size += record.size
      guard paged.canPrefetch(keys.count + 1, size: size) else { break }
      keys.append(record.key)
    }
    if keys.count > 1 { try paged.prefetch(keys.filter { storage.overlay[$0] == nil }.sorted()) }
    return max(keys.count, 1)
  }

  /// Returns the record of a slot from an index, with its value.
  ///
  /// - Throws: `.corrupted` if the storage has no such record, or another version of it. The other errors are those of the subscript.
  func resolved(_ slot: RecordSlot) throws(RepositoryError) -> RecordSlot {
    guard slot.isStub else { return slot }
    // The index and the records are of one commit. A difference shows that the storage is damaged. An index in the storage has no
    // revisions.
    guard let found = try self[slot.key], found.revision == slot.revision || slot.revision == .zero else {
      throw RepositoryError(
        .corrupted, "expected a record that an index holds, found none, or another revision, in the storage; run verify()",
        keyHash: slot.key.hash)
    }
    return found
  }

  /// Returns a copy of the value of a key, decoded at the first call, or `nil` if the key has no record.
  ///
  /// - Throws: The errors of ``RecordSlot/decoded(_:)``.
  func value<Item>(for key: RecordKey, _ coder: RecordCoder<Item>) throws(RepositoryError) -> Item? {
    try decoded(for: key, coder)?.copy()
  }

  /// Returns the value of a key behind a reference, decoded at the first call, or `nil` if the key has no record.
  ///
  /// The functions of a look-up return a reference and no optional `Item`, because for an optional `Item` the runtime would have to look up
  /// the type of the optional.
  /// - Throws: The errors of ``RecordSlot/decoded(_:)``.
  private func decoded<Item>(for key: RecordKey, _ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item>? {
    if !storage.overlay.isEmpty, let change = storage.overlay[key] { return try change?.decoded(coder) }
    return try storage.base.decoded(for: key, coder)
  }

  /// Copies the storage before a change, unless the map holds the only reference to the storage.
  private mutating func makeUnique() {
    if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage) }
  }

  /// Inserts a record or replaces the record with the same key, and returns the old record.
  ///
  /// - Throws: The errors of the subscript, with nothing changed.
  @discardableResult mutating func upsert(_ slot: RecordSlot) throws(RepositoryError) -> RecordSlot? {
    let old: RecordSlot?
    if isPaged {
      // The old record is read before any change, because the read may fail.
      old = try self[slot.key]
      makeUnique()
      noteCost(of: slot, replacing: storage.overlay.updateValue(slot, forKey: slot.key))
    } else {
      makeUnique()
      old = if let change = storage.overlay.updateValue(slot, forKey: slot.key) { change } else { try base.slot(for: slot.key) }
    }
    if old == nil { storage.count += 1 }
    // The newest and the oldest schema version are bounds only: they do not change when the last record of a version is removed.
    storage.newestSchemaVersion = max(newestSchemaVersion, slot.schemaVersion)
    storage.oldestSchemaVersion = min(oldestSchemaVersion, slot.schemaVersion)
    // A record that was saved with its decoded value is known to decode, so it is not added to the unchecked records.
    noteUnchecked(slot.reading == .readable ? nil : slot, of: slot.key)
    return old
  }

  /// Removes the record of a key, if the map has a record with this key, and returns the record.
  ///
  /// - Throws: The errors of the subscript, with nothing changed.
  @discardableResult mutating func remove(_ key: RecordKey) throws(RepositoryError) -> RecordSlot? {
    // Removing a key that has no record changes nothing, so it must not copy the storage.
    guard let old = try self[key] else { return nil }
    let isInBase = try base.slot(for: key) != nil
    makeUnique()
    // The number at opening is that of the storage. A hostile file may have counted too few records.
    storage.count = max(count - 1, 0)
    noteUnchecked(nil, of: key)
    // The base (the immutable record set) never changes, so an overlay entry without a record hides the deleted record of the base.
    if isInBase {
      noteCost(of: nil, replacing: storage.overlay.updateValue(nil, forKey: key))
    } else {
      storage.overlay.removeValue(forKey: key)
      noteCost(of: nil, replacing: old)
    }
    return old
  }

  /// Counts a change of the overlay over a base whose records stay in the storage.
  private func noteCost(of new: RecordSlot?, replacing old: RecordSlot??) {
    guard isPaged else { return }
    storage.changeCost += (new?.cost ?? 0) - ((old ?? nil)?.cost ?? 0)
  }

  /// Adds a record to the records that are not known to decode, or removes the record of the key from them if `slot` is `nil`.
  ///
  /// Call `noteUnchecked` only on a map that holds the only reference to its storage.
  private func noteUnchecked(_ slot: RecordSlot?, of key: RecordKey) {
    // If every changed record is known to decode, there is no record to remove, so the object that other maps share need not be copied.
    if slot == nil, unchecked.count == 0 { return }
    if !isKnownUniquelyReferenced(&storage.unchecked) { storage.unchecked = UncheckedRecords(unchecked) }
    storage.unchecked.set(slot, for: key)
  }

  /// Makes a new base of all records if the changes in the overlay outnumber the records of the old base by more than 4,096.
  ///
  /// Look-ups in a base (an immutable record set) are faster than in the overlay (the tree of changes). A rebase (the making of a new base)
  /// waits until the changes outnumber the base, so its cost for each change is constant on average.
  /// - Parameter isGivenUp: Returns whether the caller has no more time for making the base. A rebase that was given up is tried again at
  ///   the next commit.
  /// - Returns: True if the map has a new base.
  mutating func rebaseIfWorthwhile(unless isGivenUp: () -> Bool) -> Bool {
    // Without the added 4,096, a small collection would get a new base every few commits.
    guard !isPaged, overlay.count > base.count + Self.changeLimit,
      let changed = overlay.slots.sorted(by: { $0.key < $1.key }, unless: isGivenUp)
    else { return false }
    let slots = merged(with: changed)
    // A record that is not decoded keeps the whole memory block in which it was read. A block of which few records are left would waste
    // memory, so each record gets a copy of its own bytes.
    if base.isPacked { for slot in slots { slot.detach() } }
    self = RecordMap(slots)
    // Look-ups do not make the hash table of a base, so without `index()` they would use binary search.
    index()
    return true
  }

  /// Number of changes from which a base whose records stay in the storage is replaced by a newer one, or a small base in memory.
  static let changeLimit = 4_096

  /// Whether the overlay has at least ``changeLimit`` changes, or its changes take more than a quarter of the cache and 1 MiB.
  ///
  /// The store then replaces the map by ``moved(to:)``, which frees the changes.
  var wantsNewerBase: Bool {
    guard let paged = base.paged else { return false }
    return overlay.count >= Self.changeLimit || storage.changeCost > paged.cacheSize / 4 + 1 << 20
  }

  /// The base of the records in the storage, or `nil` if the records are in memory or have changes in memory.
  var unchangedBase: (any StoredBase)? { overlay.isEmpty ? base.paged?.base : nil }

  /// Number of the commit whose records stay in the storage, or `nil` if the records are in memory.
  var pagedCommit: Revision? { base.paged?.commit }

  /// Returns a map of the same records over a base of the commit of this map, without changes in memory.
  func moved(to newer: any StoredBase) -> RecordMap {
    guard let paged = base.paged else { return self }
    let overlay = overlay
    let moved = PagedRecords(paged, movedTo: newer, without: { overlay[$0] != nil }, unread: unchecked.unread())
    return RecordMap(moved, count: count, versions: (oldestSchemaVersion, newestSchemaVersion))
  }

  /// Whether the records stay in the storage and can no longer be read as of the commit of their base.
  var isBaseLost: Bool {
    guard let paged = base.paged else { return false }
    do throws(RepositoryError) {
      _ = try paged.base.records([RecordKey("")], of: paged.collection)
      return false
    } catch {
      return error.code == .superseded
    }
  }

  /// Returns the records of the collection in another base, or `nil` if the records are in memory.
  func paged(over other: any StoredBase) -> PagedRecords? { base.paged.map { PagedRecords($0, in: other) } }

  /// Makes the missing slots (objects of records in memory) for a range of positions of the base.
  func makeSlots(_ positions: Range<Int>) { base.makeSlots(positions) }

  /// Largest number of records of the base that have no slot (their object in memory) yet.
  var unmadeCount: Int { base.unmadeCount }

  /// Makes the hash table of the base (the records at opening or at the last rebase), if the base has none yet.
  ///
  /// Cost: linear in the records of the base, at the first call only.
  func index() { base.index() }
}

/// The records of a map that changed since its base was made and that are not known to decode.
///
/// Copies of a ``RecordMap`` share one object of `UncheckedRecords` until one of the maps changes. A record that is found to decode is
/// removed for all maps that share the object, because a record that has decoded stays decoded.
final class UncheckedRecords: Sendable {
  private let slots: Mutex<RecordTree>

  init() { slots = Mutex(RecordTree()) }

  /// Makes a copy of the records for a map that is about to change.
  init(_ other: UncheckedRecords) { slots = Mutex(other.slots.withLock { $0 }) }

  static let none = UncheckedRecords()

  var count: Int { slots.withLock { $0.count } }

  /// Sets the record of a key, or removes the record if `slot` is `nil`.
  ///
  /// Call `set` only from a map that holds the only reference to this object.
  func set(_ slot: RecordSlot?, for key: RecordKey) {
    slots.withLock { slots in
      guard let slot else { return slots.removeValue(forKey: key) }
      slots.updateValue(slot, forKey: key)
    }
  }

  /// Returns the records that were not decoded yet or that do not decode.
  ///
  /// Cost: linear in the records that the last call of `unread()` returned and the records that were added since.
  func unread() -> [RecordSlot] {
    // The loop examines a copy of the records without the lock, so that no other call waits for the loop.
    let slots = slots.withLock { $0 }
    var left = slots
    slots.forEach { key, slot in if slot?.reading == .readable { left.removeValue(forKey: key) } }
    if left.count < slots.count {
      // Two calls of `unread()` may both remove records. Each call removes only records that decode, so both results are right, and the
      // smaller tree is kept.
      self.slots.withLock { if left.count < $0.count { $0 = left } }
    }
    return left.slots
  }
}
