internal import HashTreeCollections

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
    var overlay: TreeDictionary<RecordKey, RecordSlot?> = [:]
    var count: Int
    /// Those of the overlay that may not decode.
    var doubtful = DoubtfulRecords.none
    var newestSchemaVersion: Int
    var oldestSchemaVersion: Int

    init(_ base: RecordBase) {
      self.base = base
      count = base.slots.count
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

  private var base: RecordBase { storage.base }
  private var overlay: TreeDictionary<RecordKey, RecordSlot?> { storage.overlay }
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
    if !storage.overlay.isEmpty, let change = storage.overlay[key] { return try change?.value(coder) }
    return try storage.base.value(for: key, coder)
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
