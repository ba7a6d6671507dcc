internal import Synchronization

/// The records that were there when a collection was opened or replaced, in one block that never changes.
///
/// Opening must cost a scan, so the block is a flat array, and an open-addressing table of positions in it: a tenth of what inserting the
/// records into a tree costs. Even that can wait where the array is in key order, as a JSON file's is: until the table is there, a key is
/// searched by halving. Changes go into the tree of ``RecordMap`` that lies over the block.
final class RecordBase: Sendable {
  let slots: [RecordSlot]
  /// Whether ``slots`` is in key order.
  let isSorted: Bool
  /// The newest schema version among the slots; 0 when there are none.
  let newestSchemaVersion: Int
  /// The oldest schema version among the slots; the largest number when there are none.
  let oldestSchemaVersion: Int
  /// The positions of the keys; none before ``index()`` where ``slots`` is in key order.
  private let table = LazyReference<KeyTable>()
  /// The values that were looked up.
  private let values = LazyReference<ValueTable>()
  /// The slots that have not been seen to decode, as of the last look; all others do for good.
  private let doubtful: Mutex<[RecordSlot]>

  /// Takes the slots; of two with one key the newer revision stays.
  init(_ slots: [RecordSlot]) {
    var (newest, oldest, isSorted) = (0, Int.max, true)
    var last: RecordSlot?
    for slot in slots {
      newest = max(newest, slot.schemaVersion)
      oldest = min(oldest, slot.schemaVersion)
      if isSorted, let last, !(last.key < slot.key) { isSorted = false }
      last = slot
    }
    (newestSchemaVersion, oldestSchemaVersion, self.isSorted) = (newest, oldest, isSorted)
    if isSorted {
      self.slots = slots
    } else {
      let unique: [RecordSlot]
      let keys: KeyTable
      (unique, keys) = Self.indexed(slots)
      self.slots = unique
      table.storeIfNil(keys)
    }
    doubtful = Mutex(self.slots)
  }

  static let empty = RecordBase([])

  /// Returns the slot of a key.
  ///
  /// Cost: one hash and, on average, less than two comparisons; before ``index()``, as many as halving takes.
  func slot(for key: RecordKey) -> RecordSlot? { position(of: key).map { slots[$0] } }

  /// Returns the position of a key's slot in ``slots``.
  ///
  /// Cost: as ``slot(for:)``.
  func position(of key: RecordKey) -> Int? {
    guard let table = table.unretained else { return search(key) }
    return table._withUnsafeGuaranteedRef { $0.position(of: key, in: slots) }
  }

  /// Returns a copy of the value of a key, decoded at the first call.
  ///
  /// Cost: as ``slot(for:)``. Once it was looked up, the value itself is compared where its id has a key that is cheap to make: that
  /// spares a visit to the slot, which mostly is far from any cache.
  /// - Throws: as ``RecordSlot/decoded(_:)``.
  func value<Item>(for key: RecordKey, _ coder: RecordCoder<Item>) throws(RepositoryError) -> Item? {
    guard let table = table.unretained, coder.keys.areCheap else { return try slot(for: key)?.value(coder) }
    let values = values.unretained
    var found: Int?
    let known: Item? = table._withUnsafeGuaranteedRef { table in
      table.first(key.tableHash) { position in
        if let value = values?._withUnsafeGuaranteedRef({ $0.value(at: position) }),
          let copy = value._withUnsafeGuaranteedRef({ coder.typed($0)?.copy(ifOf: key, coder.keys) })
        {
          return copy
        }
        guard found == nil, slots[position].key == key else { return nil }
        found = position
        return nil
      }
    }
    guard let found else { return known }
    let copy = try slots[found].value(coder)
    if let value = slots[found].unretainedValue {
      (self.values.load() ?? self.values.storeIfNil(ValueTable(count: slots.count))).set(value, at: found)
    }
    return copy
  }

  /// The number of slots that ``unread()`` looks at, at most.
  var doubtfulCount: Int { doubtful.withLock { $0.count } }

  /// Returns the slots that were not decoded yet, or that do not decode.
  ///
  /// Cost: linear in the slots that the last call returned; at the first call, in all.
  func unread() -> [RecordSlot] {
    let slots = doubtful.withLock { $0 }
    let left = slots.filter { $0.reading != .readable }
    if left.count < slots.count {
      doubtful.withLock { if left.count < $0.count { $0 = left } }
    }
    return left
  }

  /// Makes the table if it was put off.
  ///
  /// Cost: linear, once.
  func index() {
    guard table.load() == nil else { return }
    var keys = KeyTable.Draft(count: slots.count)
    for (position, slot) in slots.enumerated() { keys.append(slot.key, at: position) }
    table.storeIfNil(KeyTable(keys))
  }

  private func search(_ key: RecordKey) -> Int? {
    var (low, high) = (0, slots.count)
    while low < high {
      let middle = (low + high) / 2
      if slots[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low < slots.count && slots[low].key == key ? low : nil
  }

  /// Returns the slots without those that have the key of another, which no backend of ours gives, and the table of their positions.
  private static func indexed(_ slots: [RecordSlot]) -> (slots: [RecordSlot], table: KeyTable) {
    var keys = KeyTable.Draft(count: slots.count)
    var kept = slots
    var duplicates: Set<Int> = []
    for (position, slot) in slots.enumerated() {
      if let first = keys.insert(slot.key, at: position, in: slots) {
        if kept[first].revision < slot.revision { kept[first] = slot }
        duplicates.insert(position)
      }
    }
    guard !duplicates.isEmpty else { return (kept, KeyTable(keys)) }
    return indexed(kept.enumerated().filter { !duplicates.contains($0.offset) }.map(\.element))
  }
}
