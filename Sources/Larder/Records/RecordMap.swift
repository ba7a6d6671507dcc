internal import HashTreeCollections

/// The records of a collection at one commit: an immutable value whose copies share what they have in common.
///
/// It is a ``RecordBase`` from opening, and over it a persistent tree of what changed since. A copy costs nothing, a change
/// O(log of the changes).
struct RecordMap: Sendable {
  private var base: RecordBase
  /// The changes since the base: a slot, or `nil` where a record of the base was deleted.
  private var overlay: TreeDictionary<RecordKey, RecordSlot?> = [:]
  private(set) var count: Int
  /// Those of the overlay that may not decode.
  private var doubtful = DoubtfulRecords.none

  init(_ slots: [RecordSlot] = []) {
    base = slots.isEmpty ? .empty : RecordBase(slots)
    count = base.slots.count
    newestSchemaVersion = base.newestSchemaVersion
    oldestSchemaVersion = base.oldestSchemaVersion
  }

  /// An upper bound of the schema versions: no record is of a newer version than this; 0 when there was none.
  private(set) var newestSchemaVersion: Int
  /// A lower bound of the schema versions: no record is of an older version than this; the largest number when there was none.
  private(set) var oldestSchemaVersion: Int

  subscript(key: RecordKey) -> RecordSlot? {
    if !overlay.isEmpty, let change = overlay[key] { return change }
    return base.slot(for: key)
  }

  /// Puts a record in the place of its key, and returns what was there.
  @discardableResult mutating func upsert(_ slot: RecordSlot) -> RecordSlot? {
    let old = overlay.updateValue(slot, forKey: slot.key) ?? base.slot(for: slot.key)
    if old == nil { count += 1 }
    newestSchemaVersion = max(newestSchemaVersion, slot.schemaVersion)
    oldestSchemaVersion = min(oldestSchemaVersion, slot.schemaVersion)
    noteDoubt(slot.reading == .readable ? nil : slot, of: slot.key)
    return old
  }

  /// Takes the record of a key out, if there is one.
  mutating func remove(_ key: RecordKey) {
    guard self[key] != nil else { return }
    count -= 1
    noteDoubt(nil, of: key)
    if base.slot(for: key) == nil {
      overlay.removeValue(forKey: key)
    } else {
      overlay.updateValue(nil, forKey: key)
    }
  }

  private mutating func noteDoubt(_ slot: RecordSlot?, of key: RecordKey) {
    if slot == nil, doubtful.count == 0 { return }
    if !isKnownUniquelyReferenced(&doubtful) { doubtful = DoubtfulRecords(doubtful) }
    doubtful.set(slot, for: key)
  }

  /// Makes a new base of everything once the changes outnumber it: look-ups in the base are faster, and each record is moved a constant
  /// number of times however often this happens.
  /// - Returns: Whether it was worthwhile.
  mutating func rebaseIfWorthwhile() -> Bool {
    guard overlay.count > base.slots.count + 4_096 else { return false }
    self = RecordMap(ordered())
    index()
    return true
  }

  /// Prepares the base for look-ups by hash, if that was put off.
  ///
  /// Cost: linear, once.
  func index() { base.index() }

  /// Visits the records, in no order, until `body` returns `false`.
  ///
  /// Cost: linear; a look-up for each record that changed since the base was made.
  func visit(_ body: (RecordSlot) -> Bool) {
    for slot in unchanged() where !body(slot) { return }
    for case let slot? in overlay.values where !body(slot) { return }
  }

  /// Returns the records of the base that did not change since.
  private func unchanged() -> [RecordSlot] {
    if overlay.isEmpty { return base.slots }
    var isChanged = [Bool](repeating: false, count: base.slots.count)
    for key in overlay.keys {
      if let position = base.position(of: key) { isChanged[position] = true }
    }
    return base.slots.indices.lazy.filter { !isChanged[$0] }.map { base.slots[$0] }
  }

  /// The number of records that ``forEachDoubtful(_:)`` visits, at most.
  var doubtfulCount: Int { base.doubtfulCount + doubtful.count }

  /// Visits, in no order, the records that may not decode: those that were not seen to.
  ///
  /// Cost: a look at each record at the first call, then at those that were still in doubt and those that changed since.
  func forEachDoubtful(_ visit: (RecordSlot) -> Void) {
    for slot in base.unread() where overlay.index(forKey: slot.key) == nil { visit(slot) }
    for slot in doubtful.unread() { visit(slot) }
  }

  /// Returns the records of an older schema version, in no order.
  ///
  /// Cost: none where there was never one, otherwise linear.
  func older(than version: Int) -> [RecordSlot] {
    guard oldestSchemaVersion < version else { return [] }
    let unchanged = base.slots.filter { $0.schemaVersion < version && overlay[$0.key] == nil }
    return unchanged + overlay.values.compactMap { slot in slot.flatMap { $0.schemaVersion < version ? $0 : nil } }
  }

  /// Whether there are records of an older schema version.
  ///
  /// Cost: as ``older(than:)``, up to the first one.
  func hasOlder(than version: Int) -> Bool {
    guard oldestSchemaVersion < version else { return false }
    return overlay.values.contains { ($0?.schemaVersion ?? version) < version }
      || base.slots.contains { $0.schemaVersion < version && overlay[$0.key] == nil }
  }

  /// Whether ``ordered()`` has hardly anything to sort.
  var isOrdered: Bool { base.isSorted && overlay.count <= base.slots.count / 16 }

  /// Returns all records in the order of their keys.
  ///
  /// Cost: linear after opening a JSON file; sorting what changed since is extra.
  func ordered() -> [RecordSlot] {
    let unchanged = unchanged()
    let ordered = base.isSorted ? unchanged : unchanged.sorted { $0.key < $1.key }
    guard !overlay.isEmpty else { return ordered }
    return ordered.merged(with: overlay.values.compactMap { $0 }.sorted { $0.key < $1.key }) { $0.key < $1.key }
  }
}
