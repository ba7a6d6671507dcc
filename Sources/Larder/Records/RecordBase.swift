internal import Foundation
internal import Synchronization

/// The records that a collection had when it was opened or last rebased, as a base that never changes.
///
/// Opening must cost only a scan and little memory. So the records stay as they were read, a slot is made when its record is looked up, and
/// an open-addressing table finds the positions of keys. If the records are in key order, as those of a JSON file are, even the table can
/// wait: until then keys are found by binary search. Changes go into the tree that ``RecordMap`` keeps over the base.
final class RecordBase: Sendable {
  let count: Int
  /// Whether the records are in key order.
  let isSorted: Bool
  /// Newest schema version among the records, or 0 without records.
  let newestSchemaVersion: Int
  /// Oldest schema version among the records, or the largest integer without records.
  let oldestSchemaVersion: Int
  /// The records as they were read, or `nil` for a base that was made of slots.
  private let packed: PackedRecords?
  /// All slots, once all were asked for.
  private let all = LazyReference<Slots>()
  /// Positions of the keys, which are missing before ``index()`` if the records are in key order.
  private let table = LazyReference<KeyTable>()
  /// Values that were looked up.
  private let values = LazyReference<ValueTable>()
  /// Slots that were not seen to decode at the last look, or `nil` before the first.
  ///
  /// All other slots decode for good.
  private let doubtful = Mutex<[RecordSlot]?>(nil)

  private final class Slots: Sendable {
    let slots: [RecordSlot]
    init(_ slots: [RecordSlot]) { self.slots = slots }
  }

  /// Makes a base of slots, of which the newer of two with the same key stays.
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
    packed = nil
    var unique = slots
    // Ascending keys are unique, so only slots out of order need the search for duplicates.
    if !isSorted {
      let keys: KeyTable
      (unique, keys) = Self.indexed(slots)
      table.storeIfNil(keys)
    }
    count = unique.count
    all.storeIfNil(Slots(unique))
  }

  /// Makes a base of records as they were read.
  private init(_ packed: PackedRecords, _ keys: KeyTable?) {
    (count, isSorted) = (packed.count, packed.isSorted)
    (newestSchemaVersion, oldestSchemaVersion) = (packed.versions.newest, packed.versions.oldest)
    self.packed = packed
    if let keys { table.storeIfNil(keys) }
  }

  /// Makes a base of packed records, of which the newer of two with the same key stays.
  static func of(_ packs: [RecordPack]) -> RecordBase {
    let packed = PackedRecords(packs)
    // Ascending keys are unique and can be searched, so the table waits for `index()`.
    if packed.isSorted { return RecordBase(packed, nil) }
    var keys = KeyTable.Draft(count: packed.count)
    var (position, hasDuplicates) = (0, false)
    packed.forEachHash { hash in
      if keys.insert(hash, at: position, isSame: { packed.isKey(packed.key(at: position), at: $0) }) != nil { hasDuplicates = true }
      position += 1
    }
    // Which of two duplicates is newer shows in their slots.
    return hasDuplicates ? RecordBase(packed.allSlots()) : RecordBase(packed, KeyTable(keys))
  }

  static let empty = RecordBase([])

  /// Returns the slot of a key.
  ///
  /// Cost: one hash and, on average, less than two comparisons. Before ``index()`` it is a binary search.
  func slot(for key: RecordKey) -> RecordSlot? { position(of: key).map { slot(at: $0) } }

  /// All slots, where missing ones are made by reading this property.
  ///
  /// Cost: linear, once.
  var slots: [RecordSlot] {
    if let all = all.load() { return all.slots }
    guard let packed else { return [] }
    return all.storeIfNil(Slots(packed.allSlots())).slots
  }

  /// Whether values lie with others in blocks of memory.
  var isPacked: Bool { packed != nil }

  /// Number of slots that may have to be made before ``slots`` costs nothing.
  var unmadeCount: Int { all.isSet ? 0 : count }

  /// Makes the missing slots of a range of positions, so that ``slots`` has less to do.
  ///
  /// Several tasks may make different parts at the same time.
  func makeSlots(_ positions: Range<Int>) { packed?.makeSlots(positions) }

  /// Returns the slot at a position in the order of the records.
  func slot(at position: Int) -> RecordSlot {
    // Counting a reference here would make readers on several cores contend for one counter.
    if let all = all.unretained { return all._withUnsafeGuaranteedRef { $0.slots[position] } }
    return packed?.slot(at: position) ?? slots[position]
  }

  private func isKey(_ key: RecordKey, at position: Int) -> Bool {
    // Packed keys are compared without making a slot.
    if let packed { return packed.isKey(key, at: position) }
    return slot(at: position).key == key
  }

  private func key(at position: Int) -> RecordKey { packed?.key(at: position) ?? slot(at: position).key }

  /// Returns the position of a key's slot in ``slots``.
  ///
  /// Cost: as ``slot(for:)``.
  func position(of key: RecordKey) -> Int? {
    guard let table = table.unretained else { return search(key) }
    return table._withUnsafeGuaranteedRef { $0.first(key.tableHash) { isKey(key, at: $0) ? $0 : nil } }
  }

  /// Returns the position behind all keys up to a given one, in a base that is in key order.
  func end(of key: RecordKey) -> Int { (0..<count).partitionPoint { key < self.key(at: $0) } }

  /// Returns the value of a key behind a reference, without copying it, and decodes it at the first call.
  ///
  /// Cost: as ``slot(for:)``. A value that was looked up before is recognised by its own id, if that has a key that is cheap to make. That
  /// spares a visit to the slot, which mostly lies far from any cache.
  /// - Throws: As ``RecordSlot/decoded(_:)``.
  func decoded<Item>(for key: RecordKey, _ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item>? {
    // Only a key that is cheap to make is worth comparing by the id of a value.
    guard let table = table.unretained, coder.keys.areCheap else { return try slot(for: key)?.decoded(coder) }
    let values = values.unretained
    var known: DecodedValue<Item>?
    let found: Int? = table._withUnsafeGuaranteedRef { table in
      table.first(key.tableHash) { position in
        if let value = values?._withUnsafeGuaranteedRef({ $0.value(at: position) }),
          let typed = value._withUnsafeGuaranteedRef({ coder.typed($0) }), typed.isOf(key, coder.keys)
        {
          known = typed
          return position
        }
        return isKey(key, at: position) ? position : nil
      }
    }
    if let known { return known }
    guard let found else { return nil }
    let slot = slot(at: found)
    let value = try slot.decoded(coder)
    if let value = slot.unretainedValue {
      // Made at the first look-up, because the table takes eight bytes for each record.
      (self.values.load() ?? self.values.storeIfNil(ValueTable(count: count))).set(value, at: found)
    }
    return value
  }

  /// Largest number of slots that ``unread()`` looks at.
  var doubtfulCount: Int { doubtful.withLock { $0?.count ?? count } }

  /// Returns the slots that were not decoded yet or that do not decode.
  ///
  /// Cost: linear in the slots that the last call returned. The first call looks at all slots.
  func unread() -> [RecordSlot] {
    // The first look needs every slot, later ones only those in doubt.
    let slots = doubtful.withLock { $0 } ?? slots
    let left = slots.filter { $0.reading != .readable }
    // Two readers may look at once. The shorter list holds, because a slot that decodes does so for good.
    doubtful.withLock { if left.count < $0?.count ?? .max { $0 = left } }
    return left
  }

  /// Makes the table of positions if it was put off.
  func index() {
    guard !table.isSet else { return }
    var keys = KeyTable.Draft(count: count)
    var position = 0
    func append(_ hash: UInt64) {
      keys.append(hash, at: position)
      position += 1
    }
    if let packed { packed.forEachHash(append) } else { for slot in slots { append(slot.key.tableHash) } }
    table.storeIfNil(KeyTable(keys))
  }

  private func search(_ key: RecordKey) -> Int? {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self.key(at: middle) < key { low = middle + 1 } else { high = middle }
    }
    return low < count && isKey(key, at: low) ? low : nil
  }

  /// Returns the slots without duplicates of a key, and the table of their positions.
  ///
  /// The newer of two duplicates stays. None of Larder's own backends returns a key twice.
  private static func indexed(_ slots: [RecordSlot]) -> (slots: [RecordSlot], table: KeyTable) {
    var keys = KeyTable.Draft(count: slots.count)
    var kept = slots
    var duplicates: Set<Int> = []
    for (position, slot) in slots.enumerated() {
      if let first = keys.insert(slot.key.tableHash, at: position, isSame: { slots[$0].key == slot.key }) {
        if kept[first].revision < slot.revision { kept[first] = slot }
        duplicates.insert(position)
      }
    }
    guard !duplicates.isEmpty else { return (kept, KeyTable(keys)) }
    // Removing slots has moved the others, so the table is made again.
    return indexed(kept.enumerated().filter { !duplicates.contains($0.offset) }.map(\.element))
  }
}

/// An immutable open-addressing hash table from keys to positions in an array of slots.
///
/// An entry has the position in its low bits, as many as the table's size needs, and bits of the key's hash above them. So a look-up reads
/// the record that it looks for, and hardly ever another.
final class KeyTable: Sendable {
  private let entries: [UInt32]

  init(_ draft: consuming Draft) { entries = draft.entries }

  /// Returns the first result of a closure that is called with each position whose key may have a hash.
  @inline(__always)
  func first<Result>(_ hash: UInt64, _ result: (Int) -> Result?) -> Result? {
    let mask = UInt32(truncatingIfNeeded: entries.count - 1)
    var index = UInt32(truncatingIfNeeded: hash) & mask
    while true {
      let entry = entries[Int(index)]
      // Entries hold the position plus one, so zero marks an empty entry. At least half of them are empty.
      if entry & mask == 0 { return nil }
      if (entry ^ UInt32(truncatingIfNeeded: hash >> 32)) & ~mask == 0, let result = result(Int(entry & mask) - 1) { return result }
      index = (index + 1) & mask
    }
  }

  /// A table that is being built.
  struct Draft {
    fileprivate var entries: [UInt32]

    /// Makes an empty table for a number of keys.
    ///
    /// Its size is a power of two and at least twice that number, so that an empty entry is near everywhere.
    init(count: Int) {
      var size = 2
      while size < count * 2 { size *= 2 }
      entries = [UInt32](repeating: 0, count: size)
    }

    /// Adds a key by its hash, which must not be in the table yet.
    mutating func append(_ hash: UInt64, at position: Int) { _ = insert(hash, at: position) { _ in false } }

    /// Adds a key by its hash, or returns the position of the same key that is there already.
    @inline(__always)
    mutating func insert(_ hash: UInt64, at position: Int, isSame: (Int) -> Bool) -> Int? {
      entries.withUnsafeMutableBufferPointer { entries in
        let mask = UInt32(truncatingIfNeeded: entries.count - 1)
        var index = UInt32(truncatingIfNeeded: hash) & mask
        while entries[Int(index)] & mask != 0 {
          let entry = entries[Int(index)]
          if (entry ^ UInt32(truncatingIfNeeded: hash >> 32)) & ~mask == 0, isSame(Int(entry & mask) - 1) { return Int(entry & mask) - 1 }
          index = (index + 1) & mask
        }
        entries[Int(index)] = UInt32(truncatingIfNeeded: hash >> 32) & ~mask | UInt32(position + 1)
        return nil
      }
    }
  }
}

/// The decoded values of an array of slots by position, from which a look-up reads without visiting the slot.
///
/// Unchecked, since the compiler does not see that the memory holds atomics only, which are never moved.
final class ValueTable: @unchecked Sendable {
  /// Addresses of the values, which their slots own, or 0 where no value is known.
  private let addresses: UnsafeMutablePointer<Atomic<UInt>>?

  /// Makes an empty table, whose memory is taken as positions are set.
  init(count: Int) {
    // Zero bytes are valid atomics, and the system provides pages of them only when they are touched. Without memory look-ups work without
    // this table.
    addresses = calloc(count, MemoryLayout<Atomic<UInt>>.stride)?.bindMemory(to: Atomic<UInt>.self, capacity: count)
  }

  deinit { free(addresses) }

  /// Returns the value at a position, or `nil` if it was not looked up yet.
  func value(at position: Int) -> Unmanaged<any DecodedRecord>? {
    guard let addresses else { return nil }
    return UnsafeRawPointer(bitPattern: addresses[position].load(ordering: .acquiring)).map(Unmanaged.fromOpaque)
  }

  /// Sets the value at a position, which its slot must keep as long as the table is used.
  func set(_ value: Unmanaged<any DecodedRecord>, at position: Int) {
    // Releasing, so that a reader that finds the address finds a whole value.
    addresses?[position].store(UInt(bitPattern: value.toOpaque()), ordering: .releasing)
  }
}
