// Records/ holds the forms of a record in memory: its key, its encoded bytes, the slot (an object) that decodes them on first use, and the
// map of all records of a collection.
// Invariant: a record that does not decode keeps its bytes, and prevents no other record from being read.
// Called by Indexes, Query, Engine and migrations.

internal import HeapModule
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
      newestSchemaVersion = other.newestSchemaVersion
      oldestSchemaVersion = other.oldestSchemaVersion
    }

    static let empty = Storage(.empty)
  }

  init(_ slots: [RecordSlot] = []) { storage = slots.isEmpty ? .empty : Storage(RecordBase(slots)) }

  /// Makes a map of packs, the blocks of records that a backend has read.
  init(_ packs: [RecordPack]) { storage = packs.isEmpty ? .empty : Storage(.of(packs)) }

  private var base: RecordBase { storage.base }
  private var overlay: RecordTree { storage.overlay }
  private var unchecked: UncheckedRecords { storage.unchecked }

  var count: Int { storage.count }
  /// Upper bound of the schema versions of the records, or 0 if the map has never had a record.
  var newestSchemaVersion: Int { storage.newestSchemaVersion }
  /// Lower bound of the schema versions of the records, or the largest integer if the map has never had a record.
  var oldestSchemaVersion: Int { storage.oldestSchemaVersion }

  subscript(key: RecordKey) -> RecordSlot? {
    // An empty overlay (the tree of changes), as after opening, is skipped, so that a look-up hashes the key once and not twice.
    if !storage.overlay.isEmpty, let change = storage.overlay[key] { return change }
    return storage.base.slot(for: key)
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
  @discardableResult mutating func upsert(_ slot: RecordSlot) -> RecordSlot? {
    makeUnique()
    let old = storage.overlay.updateValue(slot, forKey: slot.key) ?? base.slot(for: slot.key)
    if old == nil { storage.count += 1 }
    // The newest and the oldest schema version are bounds only: they do not change when the last record of a version is removed.
    storage.newestSchemaVersion = max(newestSchemaVersion, slot.schemaVersion)
    storage.oldestSchemaVersion = min(oldestSchemaVersion, slot.schemaVersion)
    // A record that was saved with its decoded value is known to decode, so it is not added to the unchecked records.
    noteUnchecked(slot.reading == .readable ? nil : slot, of: slot.key)
    return old
  }

  /// Removes the record of a key, if the map has a record with this key.
  mutating func remove(_ key: RecordKey) {
    // Removing a key that has no record changes nothing, so it must not copy the storage.
    guard self[key] != nil else { return }
    makeUnique()
    storage.count -= 1
    noteUnchecked(nil, of: key)
    // The base (the immutable record set) never changes, so an overlay entry without a record hides the deleted record of the base.
    if base.slot(for: key) == nil {
      storage.overlay.removeValue(forKey: key)
    } else {
      storage.overlay.updateValue(nil, forKey: key)
    }
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
    guard overlay.count > base.count + 4_096, let changed = overlay.slots.sorted(by: { $0.key < $1.key }, unless: isGivenUp) else {
      return false
    }
    let slots = ordered(with: changed)
    // A record that is not decoded keeps the whole memory block in which it was read. A block of which few records are left would waste
    // memory, so each record gets a copy of its own bytes.
    if base.isPacked { for slot in slots { slot.detach() } }
    self = RecordMap(slots)
    // Look-ups do not make the hash table of a base, so without `index()` they would use binary search.
    index()
    return true
  }

  /// Makes the missing slots (objects of records in memory) for a range of positions of the base.
  func makeSlots(_ positions: Range<Int>) { base.makeSlots(positions) }

  /// Largest number of records of the base that have no slot (their object in memory) yet.
  var unmadeCount: Int { base.unmadeCount }

  /// Makes the hash table of the base (the records at opening or at the last rebase), if the base has none yet.
  ///
  /// Cost: linear in the records of the base, at the first call only.
  func index() { base.index() }

  /// Visits the records in no fixed order until `body` returns `false`.
  ///
  /// Cost: linear in the records, with a look-up for each record that changed since the base was made.
  func visit(_ body: (RecordSlot) -> Bool) {
    for slot in unchanged() where !body(slot) { return }
    overlay.visit { _, slot in slot.map(body) ?? true }
  }

  /// Visits the records in no fixed order until `body` returns `false`, and makes a record's object in memory only for the visit.
  ///
  /// Cost: the cost of ``visit(_:)``, and less if `body` returns `false` early.
  func visitOneByOne(_ body: (RecordSlot) -> Bool) {
    for position in 0..<base.count {
      let slot = base.slot(at: position)
      if overlay.isEmpty || overlay[slot.key] == nil, !body(slot) { return }
    }
    overlay.visit { _, slot in slot.map(body) ?? true }
  }

  /// Visits the records in the order of their ids until `body` returns `false`, beginning after `start` if that key is given.
  ///
  /// If the base is in the order of the ids, the cost is a binary search, a test of each key in the tree of changes, and one step for each
  /// visited record. If the base is in another order, the cost is a test of each key of the map, and a step in a heap for each visited
  /// record. `visitOrdered` decodes no record.
  func visitOrdered(by order: KeyOrder, after start: RecordKey? = nil, _ body: (RecordSlot) -> Bool) {
    func isBehind(_ key: RecordKey) -> Bool { start.map { order.isBefore($0, key) } ?? true }
    // A base in key order is sorted by the bytes of its keys, and the order of ids that are numbers differs from the order of bytes.
    let isBaseOrdered = order.isOfBytes && base.isSorted
    var waiting: [WaitingSlot] = []
    if isBaseOrdered {
      overlay.forEach { key, slot in
        if isBehind(key) { waiting.append(WaitingSlot(key: OrderedKey(key: key, order: order), slot: slot)) }
      }
    } else {
      visit { slot in
        if isBehind(slot.key) { waiting.append(WaitingSlot(key: OrderedKey(key: slot.key, order: order), slot: slot)) }
        return true
      }
    }
    // The records are put in a heap, because most callers read only one page of records. Sorting all records would take many times as long
    // as reading one page from a heap.
    var changes = Heap(waiting)
    if isBaseOrdered {
      for position in (start.map(base.end(of:)) ?? 0)..<base.count {
        let slot = base.slot(at: position)
        var isChanged = false
        while let next = changes.min, !(slot.key < next.key.key) {
          changes.removeMin()
          // An entry of the overlay (the tree of changes) with the key of a base record replaces the base record, or hides it if the record
          // was deleted.
          if next.key.key == slot.key { isChanged = true }
          if let changed = next.slot, !body(changed) { return }
        }
        if !isChanged, !body(slot) { return }
      }
    }
    while let next = changes.popMin() {
      if let slot = next.slot, !body(slot) { return }
    }
  }

  /// A record that is still to be visited, with its key, or the key of a deleted record, with `nil` as the slot.
  private struct WaitingSlot: Comparable {
    let key: OrderedKey
    let slot: RecordSlot?

    static func == (left: WaitingSlot, right: WaitingSlot) -> Bool { left.key == right.key }
    static func < (left: WaitingSlot, right: WaitingSlot) -> Bool { left.key < right.key }
  }

  /// Returns the records of the base that did not change since the base was made.
  private func unchanged() -> [RecordSlot] {
    // Right after opening, the overlay (the tree of changes) is empty, so the slots of the base are returned without a copy.
    if overlay.isEmpty { return base.slots }
    // Changed records are marked by position, because looking up each record of the base in the tree of changes would hash every key of the
    // base.
    var isChanged = [Bool](repeating: false, count: base.count)
    overlay.forEach { key, _ in
      if let position = base.position(of: key) { isChanged[position] = true }
    }
    return zip(base.slots, isChanged).compactMap { $1 ? nil : $0 }
  }

  /// Largest number of records that ``forEachDoubtful(_:)`` visits.
  var doubtfulCount: Int { base.doubtfulCount + unchecked.count }

  /// Visits, in no fixed order, the records that are not known to decode.
  ///
  /// Cost: the first call examines every record. A later call examines only the records that were not known to decode after the previous
  /// call, and the records that changed since that call.
  func forEachDoubtful(_ visit: (RecordSlot) -> Void) {
    for slot in base.unread() where overlay[slot.key] == nil { visit(slot) }
    for slot in unchecked.unread() { visit(slot) }
  }

  /// Returns the records of an older schema version, in no fixed order.
  ///
  /// Cost: none if the map has never had a record of an older version, otherwise linear in the records.
  func older(than version: Int) -> [RecordSlot] {
    // Nearly every call returns at the comparison with the lower bound, because most collections have records of one version only.
    guard oldestSchemaVersion < version else { return [] }
    let unchanged = base.slots.filter { $0.schemaVersion < version && overlay[$0.key] == nil }
    return unchanged + overlay.slots.filter { $0.schemaVersion < version }
  }

  /// Whether the map has records of an older schema version.
  ///
  /// Cost: the cost of ``older(than:)``, but only up to the first record of an older version.
  func hasOlder(than version: Int) -> Bool {
    guard oldestSchemaVersion < version else { return false }
    // The overlay (the tree of changes) mostly has fewer records than the base, so it is searched before the base.
    return !overlay.visit { ($1?.schemaVersion ?? version) >= version }
      || base.slots.contains { $0.schemaVersion < version && overlay[$0.key] == nil }
  }

  /// Whether ``ordered()`` has to sort only few records.
  var isOrdered: Bool { base.isSorted && overlay.count <= base.count / 16 }

  /// Returns all records in the order of their keys.
  ///
  /// Cost: linear if the base is in key order, as after opening a JSON file. The records that changed since the base was made are sorted in
  /// addition. Without a base in key order, all records are sorted.
  func ordered() -> [RecordSlot] { ordered(with: overlay.slots.sorted { $0.key < $1.key }) }

  /// Returns all records in the order of their keys.
  ///
  /// - Parameter changed: The records that changed since the base was made, sorted by their keys.
  private func ordered(with changed: [RecordSlot]) -> [RecordSlot] {
    let unchanged = unchanged()
    let ordered = base.isSorted ? unchanged : unchanged.sorted { $0.key < $1.key }
    return changed.isEmpty ? ordered : ordered.merged(with: changed) { $0.key < $1.key }
  }
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
