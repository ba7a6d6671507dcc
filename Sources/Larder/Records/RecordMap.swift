// Records/ holds a record's forms: key, encoded bytes, the slot that decodes on first use, and the map of a collection.
// Invariant: a record that does not decode keeps its bytes, and hides no other record.
// Called by Indexes, Query, Engine and migrations.

internal import HeapModule
internal import Synchronization

/// The records of a collection at one commit, as a value whose copies share memory.
///
/// It has a base (``RecordBase``) from opening, and over the base a persistent tree of the changes since (the overlay). A copy costs
/// nothing, and a change O(log of the changes).
struct RecordMap: Sendable {
  private var storage: Storage

  /// The contents of a map behind one reference, so that copying the published state costs one retain.
  ///
  /// Unchecked, since it changes: only a map that holds it alone changes it, and each change tests that first.
  private final class Storage: @unchecked Sendable {
    let base: RecordBase
    /// The changes since the base: a slot, or `nil` for a record of the base that was deleted.
    ///
    /// Accesses are not checked for overlaps, because every look-up would pay for it. Only methods of the map use the tree, and none calls
    /// another meanwhile.
    @exclusivity(unchecked) var overlay = RecordTree()
    var count: Int
    /// Records of the overlay that may not decode.
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

  /// Makes a map of records as a backend has read them.
  init(_ packs: [RecordPack]) { storage = packs.isEmpty ? .empty : Storage(.of(packs)) }

  private var base: RecordBase { storage.base }
  private var overlay: RecordTree { storage.overlay }
  private var unchecked: UncheckedRecords { storage.unchecked }

  var count: Int { storage.count }
  /// Upper bound of the records' schema versions, or 0 if there never was a record.
  var newestSchemaVersion: Int { storage.newestSchemaVersion }
  /// Lower bound of the records' schema versions, or the largest integer if there never was a record.
  var oldestSchemaVersion: Int { storage.oldestSchemaVersion }

  subscript(key: RecordKey) -> RecordSlot? {
    // Without changes, as after opening, the key is looked up once and not twice.
    if !storage.overlay.isEmpty, let change = storage.overlay[key] { return change }
    return storage.base.slot(for: key)
  }

  /// Returns a copy of the value of a key, decoded at the first call, or `nil` without a record.
  /// - Throws: As ``RecordSlot/decoded(_:)``.
  func value<Item>(for key: RecordKey, _ coder: RecordCoder<Item>) throws(RepositoryError) -> Item? {
    try decoded(for: key, coder)?.copy()
  }

  /// Returns the value of a key behind a reference, decoded at the first call, or `nil` without a record.
  ///
  /// Look-ups pass references only. The type of an optional value would be looked up on the way.
  /// - Throws: As ``RecordSlot/decoded(_:)``.
  private func decoded<Item>(for key: RecordKey, _ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item>? {
    if !storage.overlay.isEmpty, let change = storage.overlay[key] { return try change?.decoded(coder) }
    return try storage.base.decoded(for: key, coder)
  }

  /// Copies the storage before a change, unless this map holds it alone.
  private mutating func makeUnique() {
    if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage) }
  }

  /// Inserts a record or replaces the one of its key, and returns the old one.
  @discardableResult mutating func upsert(_ slot: RecordSlot) -> RecordSlot? {
    makeUnique()
    let old = storage.overlay.updateValue(slot, forKey: slot.key) ?? base.slot(for: slot.key)
    if old == nil { storage.count += 1 }
    // Bounds only: they stay when the last record of a version goes.
    storage.newestSchemaVersion = max(newestSchemaVersion, slot.schemaVersion)
    storage.oldestSchemaVersion = min(oldestSchemaVersion, slot.schemaVersion)
    // A record that was saved with its decoded value is not in doubt.
    noteUnchecked(slot.reading == .readable ? nil : slot, of: slot.key)
    return old
  }

  /// Removes the record of a key, if there is one.
  mutating func remove(_ key: RecordKey) {
    // Removing a key that is not there must not copy the storage.
    guard self[key] != nil else { return }
    makeUnique()
    storage.count -= 1
    noteUnchecked(nil, of: key)
    // The base never changes, so an entry without a slot hides its record.
    if base.slot(for: key) == nil {
      storage.overlay.removeValue(forKey: key)
    } else {
      storage.overlay.updateValue(nil, forKey: key)
    }
  }

  /// Notes a record that may not decode, or with `nil` that the key has none.
  ///
  /// Only for a map that holds its storage alone.
  private func noteUnchecked(_ slot: RecordSlot?, of key: RecordKey) {
    // Without records in doubt there is none to remove, and nothing is copied.
    if slot == nil, unchecked.count == 0 { return }
    if !isKnownUniquelyReferenced(&storage.unchecked) { storage.unchecked = UncheckedRecords(unchecked) }
    storage.unchecked.set(slot, for: key)
  }

  /// Makes a new base of all records once the changes outnumber the old one.
  ///
  /// Look-ups in the base are faster, and each record is moved a constant number of times however often this happens.
  /// - Parameter isGivenUp: Whether the caller has no more time for it. The next commit tries again.
  /// - Returns: Whether there is a new base.
  mutating func rebaseIfWorthwhile(unless isGivenUp: () -> Bool) -> Bool {
    // The constant keeps a small collection from being rebased every few commits.
    guard overlay.count > base.count + 4_096, let changed = overlay.slots.sorted(by: { $0.key < $1.key }, unless: isGivenUp) else {
      return false
    }
    let slots = ordered(with: changed)
    // The few values that are left of a block would keep the whole block in memory.
    if base.isPacked { for slot in slots { slot.detach() } }
    self = RecordMap(slots)
    // No look-up makes the table of a base by itself.
    index()
    return true
  }

  /// Makes the missing slots of a range of positions of the base (see ``unmadeCount``).
  func makeSlots(_ positions: Range<Int>) { base.makeSlots(positions) }

  /// Number of slots of the base that may not have been made yet.
  var unmadeCount: Int { base.unmadeCount }

  /// Prepares the base for look-ups by hash, if that was put off.
  ///
  /// Cost: linear, once.
  func index() { base.index() }

  /// Visits the records in no order until `body` returns `false`.
  ///
  /// Cost: linear, with a look-up for each record that changed since the base was made.
  func visit(_ body: (RecordSlot) -> Bool) {
    for slot in unchanged() where !body(slot) { return }
    overlay.visit { _, slot in slot.map(body) ?? true }
  }

  /// Visits the records in no order until `body` returns `false`, and makes no slot before its visit.
  ///
  /// Cost: as ``visit(_:)``, and little if `body` ends early.
  func visitOneByOne(_ body: (RecordSlot) -> Bool) {
    for position in 0..<base.count {
      let slot = base.slot(at: position)
      if overlay.isEmpty || overlay[slot.key] == nil, !body(slot) { return }
    }
    overlay.visit { _, slot in slot.map(body) ?? true }
  }

  /// Visits the records in the order of their ids, from behind a key if one is given, until `body` returns `false`.
  ///
  /// Cost: if the base is in that order, a search, a look at each key that changed since, and a step for each visited record. In another
  /// order, a look at each key, and a step in a heap for each visited record. Nothing is decoded.
  func visitOrdered(by order: KeyOrder, after start: RecordKey? = nil, _ body: (RecordSlot) -> Bool) {
    func isBehind(_ key: RecordKey) -> Bool { start.map { order.isBefore($0, key) } ?? true }
    // The base is sorted by bytes, which is not the order of numbers.
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
    // A heap, because mostly one page is read. Sorting all of them would take many times as long.
    var changes = Heap(waiting)
    if isBaseOrdered {
      for position in (start.map(base.end(of:)) ?? 0)..<base.count {
        let slot = base.slot(at: position)
        var isChanged = false
        while let next = changes.min, !(slot.key < next.key.key) {
          changes.removeMin()
          // The changed record takes the place of the one in the base.
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

  /// A record that is still to be visited, or a deleted one without a slot.
  private struct WaitingSlot: Comparable {
    let key: OrderedKey
    let slot: RecordSlot?

    static func == (left: WaitingSlot, right: WaitingSlot) -> Bool { left.key == right.key }
    static func < (left: WaitingSlot, right: WaitingSlot) -> Bool { left.key < right.key }
  }

  /// Returns the records of the base that have not changed since it was made.
  private func unchanged() -> [RecordSlot] {
    // Right after opening nothing has changed, and nothing is copied.
    if overlay.isEmpty { return base.slots }
    // Marked by position: a look-up of each record in the overlay would hash every key of the base.
    var isChanged = [Bool](repeating: false, count: base.count)
    overlay.forEach { key, _ in
      if let position = base.position(of: key) { isChanged[position] = true }
    }
    return zip(base.slots, isChanged).compactMap { $1 ? nil : $0 }
  }

  /// Largest number of records that ``forEachDoubtful(_:)`` visits.
  var doubtfulCount: Int { base.doubtfulCount + unchecked.count }

  /// Visits in no order the records that were not seen to decode.
  ///
  /// Cost: a look at each record at the first call, then at those that were still in doubt and those that changed since.
  func forEachDoubtful(_ visit: (RecordSlot) -> Void) {
    for slot in base.unread() where overlay[slot.key] == nil { visit(slot) }
    for slot in unchecked.unread() { visit(slot) }
  }

  /// Returns the records of an older schema version, in no order.
  ///
  /// Cost: none if there never was one, otherwise linear.
  func older(than version: Int) -> [RecordSlot] {
    // The bound answers nearly every call, because most collections have one version.
    guard oldestSchemaVersion < version else { return [] }
    let unchanged = base.slots.filter { $0.schemaVersion < version && overlay[$0.key] == nil }
    return unchanged + overlay.slots.filter { $0.schemaVersion < version }
  }

  /// Whether there are records of an older schema version.
  ///
  /// Cost: as ``older(than:)``, up to the first one.
  func hasOlder(than version: Int) -> Bool {
    guard oldestSchemaVersion < version else { return false }
    // The changes are mostly few, so they are looked through before the base.
    return !overlay.visit { ($1?.schemaVersion ?? version) >= version }
      || base.slots.contains { $0.schemaVersion < version && overlay[$0.key] == nil }
  }

  /// Whether ``ordered()`` has little to sort.
  var isOrdered: Bool { base.isSorted && overlay.count <= base.count / 16 }

  /// Returns all records in the order of their keys.
  ///
  /// Cost: linear after opening a JSON file. Sorting the records that changed since is extra.
  func ordered() -> [RecordSlot] { ordered(with: overlay.slots.sorted { $0.key < $1.key }) }

  /// Returns all records in the order of their keys.
  /// - Parameter changed: The records that changed since the base was made, in that order.
  private func ordered(with changed: [RecordSlot]) -> [RecordSlot] {
    let unchanged = unchanged()
    let ordered = base.isSorted ? unchanged : unchanged.sorted { $0.key < $1.key }
    return changed.isEmpty ? ordered : ordered.merged(with: changed) { $0.key < $1.key }
  }
}

/// The records that changed since a collection's base was made and are not known to decode.
///
/// Copies of a ``RecordMap`` share one object until they change. A record that is found to decode is removed for all of them, because it
/// decodes for good.
final class UncheckedRecords: Sendable {
  private let slots: Mutex<RecordTree>

  init() { slots = Mutex(RecordTree()) }

  /// Makes a copy, for a map that is about to change.
  init(_ other: UncheckedRecords) { slots = Mutex(other.slots.withLock { $0 }) }

  static let none = UncheckedRecords()

  var count: Int { slots.withLock { $0.count } }

  /// Sets the record of a key, or removes it with `nil`.
  ///
  /// Only for the one map that holds this object.
  func set(_ slot: RecordSlot?, for key: RecordKey) {
    slots.withLock { slots in
      guard let slot else { return slots.removeValue(forKey: key) }
      slots.updateValue(slot, forKey: key)
    }
  }

  /// Returns the records that were not decoded yet or that do not decode.
  ///
  /// Cost: linear in the records that the last call returned and those that came since.
  func unread() -> [RecordSlot] {
    // Works on a copy, so that no other call waits for the visit.
    let slots = slots.withLock { $0 }
    var left = slots
    slots.forEach { key, slot in if slot?.reading == .readable { left.removeValue(forKey: key) } }
    if left.count < slots.count {
      // Two readers may both shorten the tree. A record that one of them leaves out decodes, so either result is right.
      self.slots.withLock { if left.count < $0.count { $0 = left } }
    }
    return left.slots
  }
}
