internal import HeapModule
internal import Synchronization

/// The records of a collection at one commit: an immutable value whose copies share what they have in common.
///
/// It is a ``RecordBase`` from opening, and over it a persistent tree of what changed since. A copy costs nothing, a change
/// O(log of the changes).
struct RecordMap: Sendable {
  private var storage: Storage

  /// Everything that a map has, behind one reference: whoever reads the published state counts one more user of one object.
  ///
  /// Unchecked, since it changes: only in the hands of the one map that has it, which is asked for before each change.
  private final class Storage: @unchecked Sendable {
    let base: RecordBase
    /// The changes since the base: a slot, or `nil` where a record of the base was deleted.
    ///
    /// Not watched for overlapping accesses, which every look-up would pay for: only methods of the map use it, and none within another.
    @exclusivity(unchecked) var overlay = RecordTree()
    var count: Int
    /// Those of the overlay that may not decode.
    var doubtful = DoubtfulRecords.none
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
      doubtful = other.doubtful
      newestSchemaVersion = other.newestSchemaVersion
      oldestSchemaVersion = other.oldestSchemaVersion
    }

    static let empty = Storage(.empty)
  }

  init(_ slots: [RecordSlot] = []) { storage = slots.isEmpty ? .empty : Storage(RecordBase(slots)) }

  /// Makes a map of records as they were read.
  init(_ packs: [RecordPack]) { storage = packs.isEmpty ? .empty : Storage(.of(packs)) }

  private var base: RecordBase { storage.base }
  private var overlay: RecordTree { storage.overlay }
  private var doubtful: DoubtfulRecords { storage.doubtful }

  var count: Int { storage.count }
  /// An upper bound of the schema versions: no record is of a newer version than this; 0 when there was none.
  var newestSchemaVersion: Int { storage.newestSchemaVersion }
  /// A lower bound of the schema versions: no record is of an older version than this; the largest number when there was none.
  var oldestSchemaVersion: Int { storage.oldestSchemaVersion }

  subscript(key: RecordKey) -> RecordSlot? {
    if !storage.overlay.isEmpty, let change = storage.overlay[key] { return change }
    return storage.base.slot(for: key)
  }

  /// Returns a copy of the value of a key, decoded at the first call; `nil` without a record.
  /// - Throws: as ``RecordSlot/decoded(_:)``.
  func value<Item>(for key: RecordKey, _ coder: RecordCoder<Item>) throws(RepositoryError) -> Item? {
    try decoded(for: key, coder)?.copy()
  }

  /// Returns the value of a key, decoded at the first call, to be looked at without copying it; `nil` without a record.
  ///
  /// A reference, as all that is handed on within a look-up: an optional value would have its type looked up on the way.
  /// - Throws: as ``RecordSlot/decoded(_:)``.
  private func decoded<Item>(for key: RecordKey, _ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item>? {
    if !storage.overlay.isEmpty, let change = storage.overlay[key] { return try change?.decoded(coder) }
    return try storage.base.decoded(for: key, coder)
  }

  /// Makes the storage that of this map alone, for a change.
  private mutating func makeUnique() {
    if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage) }
  }

  /// Puts a record in the place of its key, and returns what was there.
  @discardableResult mutating func upsert(_ slot: RecordSlot) -> RecordSlot? {
    makeUnique()
    let old = storage.overlay.updateValue(slot, forKey: slot.key) ?? base.slot(for: slot.key)
    if old == nil { storage.count += 1 }
    storage.newestSchemaVersion = max(newestSchemaVersion, slot.schemaVersion)
    storage.oldestSchemaVersion = min(oldestSchemaVersion, slot.schemaVersion)
    noteDoubt(slot.reading == .readable ? nil : slot, of: slot.key)
    return old
  }

  /// Takes the record of a key out, if there is one.
  mutating func remove(_ key: RecordKey) {
    guard self[key] != nil else { return }
    makeUnique()
    storage.count -= 1
    noteDoubt(nil, of: key)
    if base.slot(for: key) == nil {
      storage.overlay.removeValue(forKey: key)
    } else {
      storage.overlay.updateValue(nil, forKey: key)
    }
  }

  /// For a map that has its storage alone.
  private func noteDoubt(_ slot: RecordSlot?, of key: RecordKey) {
    if slot == nil, doubtful.count == 0 { return }
    if !isKnownUniquelyReferenced(&storage.doubtful) { storage.doubtful = DoubtfulRecords(doubtful) }
    storage.doubtful.set(slot, for: key)
  }

  /// Makes a new base of everything once the changes outnumber it: look-ups in the base are faster, and each record is moved a constant
  /// number of times however often this happens.
  /// - Parameter isGivenUp: Whether the caller has no time for it any more; it is tried again after the next commit.
  /// - Returns: Whether there is a new base.
  mutating func rebaseIfWorthwhile(unless isGivenUp: () -> Bool) -> Bool {
    guard overlay.count > base.count + 4_096, let changed = overlay.slots.sorted(by: { $0.key < $1.key }, unless: isGivenUp) else {
      return false
    }
    let slots = ordered(with: changed)
    // The few that are left of a block that was read would keep it whole.
    if base.isPacked { for slot in slots { slot.detach() } }
    self = RecordMap(slots)
    index()
    return true
  }

  /// Makes the slots of some positions of the base; see ``unmadeCount``.
  func makeSlots(_ positions: Range<Int>) { base.makeSlots(positions) }

  /// The number of slots of the base that may not have been made yet.
  var unmadeCount: Int { base.unmadeCount }

  /// Prepares the base for look-ups by hash, if that was put off.
  ///
  /// Cost: linear, once.
  func index() { base.index() }

  /// Visits the records, in no order, until `body` returns `false`.
  ///
  /// Cost: linear; a look-up for each record that changed since the base was made.
  func visit(_ body: (RecordSlot) -> Bool) {
    for slot in unchanged() where !body(slot) { return }
    overlay.visit { _, slot in slot.map(body) ?? true }
  }

  /// Visits the records, in no order, until `body` returns `false`, and makes no slot before its visit.
  ///
  /// Cost: as ``visit(_:)``; little where `body` ends early.
  func visitOneByOne(_ body: (RecordSlot) -> Bool) {
    for position in 0..<base.count {
      let slot = base.slot(at: position)
      if overlay.isEmpty || overlay[slot.key] == nil, !body(slot) { return }
    }
    overlay.visit { _, slot in slot.map(body) ?? true }
  }

  /// Visits the records in the order of their ids, from behind a key if one is given, until `body` returns `false`.
  ///
  /// Cost: a search and a step for each record that is visited, where the base is in that order; a look at each key that changed since.
  /// In another order a look at each key, and for each record that is visited a step in a heap. Nothing is decoded.
  func visitOrdered(by order: KeyOrder, after start: RecordKey? = nil, _ body: (RecordSlot) -> Bool) {
    func isBehind(_ key: RecordKey) -> Bool { start.map { order.isBefore($0, key) } ?? true }
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
    // A heap, since mostly a page is wanted and no more: to sort all of them would take many times as long.
    var changes = Heap(waiting)
    if isBaseOrdered {
      for position in (start.map(base.end(of:)) ?? 0)..<base.count {
        let slot = base.slot(at: position)
        var isChanged = false
        while let next = changes.min, !(slot.key < next.key.key) {
          changes.removeMin()
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

  /// A record that is still to be visited; none where it was deleted.
  private struct WaitingSlot: Comparable {
    let key: OrderedKey
    let slot: RecordSlot?

    static func == (left: WaitingSlot, right: WaitingSlot) -> Bool { left.key == right.key }
    static func < (left: WaitingSlot, right: WaitingSlot) -> Bool { left.key < right.key }
  }

  /// Returns the records of the base that did not change since.
  private func unchanged() -> [RecordSlot] {
    if overlay.isEmpty { return base.slots }
    var isChanged = [Bool](repeating: false, count: base.count)
    overlay.forEach { key, _ in
      if let position = base.position(of: key) { isChanged[position] = true }
    }
    return zip(base.slots, isChanged).compactMap { $1 ? nil : $0 }
  }

  /// The number of records that ``forEachDoubtful(_:)`` visits, at most.
  var doubtfulCount: Int { base.doubtfulCount + doubtful.count }

  /// Visits, in no order, the records that may not decode: those that were not seen to.
  ///
  /// Cost: a look at each record at the first call, then at those that were still in doubt and those that changed since.
  func forEachDoubtful(_ visit: (RecordSlot) -> Void) {
    for slot in base.unread() where overlay[slot.key] == nil { visit(slot) }
    for slot in doubtful.unread() { visit(slot) }
  }

  /// Returns the records of an older schema version, in no order.
  ///
  /// Cost: none where there was never one, otherwise linear.
  func older(than version: Int) -> [RecordSlot] {
    guard oldestSchemaVersion < version else { return [] }
    let unchanged = base.slots.filter { $0.schemaVersion < version && overlay[$0.key] == nil }
    return unchanged + overlay.slots.filter { $0.schemaVersion < version }
  }

  /// Whether there are records of an older schema version.
  ///
  /// Cost: as ``older(than:)``, up to the first one.
  func hasOlder(than version: Int) -> Bool {
    guard oldestSchemaVersion < version else { return false }
    return !overlay.visit { ($1?.schemaVersion ?? version) >= version }
      || base.slots.contains { $0.schemaVersion < version && overlay[$0.key] == nil }
  }

  /// Whether ``ordered()`` has hardly anything to sort.
  var isOrdered: Bool { base.isSorted && overlay.count <= base.count / 16 }

  /// Returns all records in the order of their keys.
  ///
  /// Cost: linear after opening a JSON file; sorting what changed since is extra.
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
/// Copies of a ``RecordMap`` share one until they change. A record that is found to decode is taken out for all of them: it does so for
/// good.
final class DoubtfulRecords: Sendable {
  private let slots: Mutex<RecordTree>

  init() { slots = Mutex(RecordTree()) }

  /// Makes a copy, for a map that is about to change.
  init(_ other: DoubtfulRecords) { slots = Mutex(other.slots.withLock { $0 }) }

  static let none = DoubtfulRecords()

  var count: Int { slots.withLock { $0.count } }

  /// Puts a record in the place of its key, or takes that out; for the only map that has this.
  func set(_ slot: RecordSlot?, for key: RecordKey) {
    slots.withLock { slots in
      guard let slot else { return slots.removeValue(forKey: key) }
      slots.updateValue(slot, forKey: key)
    }
  }

  /// Returns the records that were not decoded yet, or that do not decode.
  ///
  /// Cost: linear in the records that the last call returned, and those that came since.
  func unread() -> [RecordSlot] {
    let slots = slots.withLock { $0 }
    var left = slots
    slots.forEach { key, slot in if slot?.reading == .readable { left.removeValue(forKey: key) } }
    if left.count < slots.count {
      // Two readers may both do it: what is left out decodes, whichever is the last.
      self.slots.withLock { if left.count < $0.count { $0 = left } }
    }
    return left.slots
  }
}
