internal import Foundation
internal import Synchronization

/// The records that were there when a collection was opened or replaced, in one block that never changes.
///
/// Opening must cost a scan and little memory: the records stay as they were read, a slot is made when one is looked up, and an
/// open-addressing table has the positions of the keys. Even that can wait where the records are in key order, as a JSON file's are: until
/// the table is there, a key is searched by halving. Changes go into the tree of ``RecordMap`` that lies over the block.
final class RecordBase: Sendable {
  let count: Int
  /// Whether the records are in key order.
  let isSorted: Bool
  /// The newest schema version among the records; 0 when there are none.
  let newestSchemaVersion: Int
  /// The oldest schema version among the records; the largest number when there are none.
  let oldestSchemaVersion: Int
  /// The records as they were read; `nil` for a base of slots.
  private let packed: PackedRecords?
  /// All slots, once they were asked for.
  private let all = LazyReference<Slots>()
  /// The positions of the keys; none before ``index()`` where the records are in key order.
  private let table = LazyReference<KeyTable>()
  /// The values that were looked up.
  private let values = LazyReference<ValueTable>()
  /// The slots that have not been seen to decode, as of the last look; all others do for good.
  ///
  /// `nil` before the first look.
  private let doubtful = Mutex<[RecordSlot]?>(nil)

  private final class Slots: Sendable {
    let slots: [RecordSlot]
    init(_ slots: [RecordSlot]) { self.slots = slots }
  }

  /// Takes slots; of two with one key the newer revision stays.
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
    if !isSorted {
      let keys: KeyTable
      (unique, keys) = Self.indexed(slots)
      table.storeIfNil(keys)
    }
    count = unique.count
    all.storeIfNil(Slots(unique))
  }

  /// Takes records as they were read.
  private init(_ packed: PackedRecords, _ keys: KeyTable?) {
    (count, isSorted) = (packed.count, packed.isSorted)
    (newestSchemaVersion, oldestSchemaVersion) = (packed.versions.newest, packed.versions.oldest)
    self.packed = packed
    if let keys { table.storeIfNil(keys) }
  }

  /// Makes a base of records as they were read; of two with one key the newer revision stays.
  static func of(_ packs: [RecordPack]) -> RecordBase {
    let packed = PackedRecords(packs)
    if packed.isSorted { return RecordBase(packed, nil) }
    var keys = KeyTable.Draft(count: packed.count)
    var (position, hasDuplicates) = (0, false)
    packed.forEachHash { hash in
      if keys.insert(hash, at: position, isSame: { packed.isKey(packed.key(at: position), at: $0) }) != nil { hasDuplicates = true }
      position += 1
    }
    return hasDuplicates ? RecordBase(packed.allSlots()) : RecordBase(packed, KeyTable(keys))
  }

  static let empty = RecordBase([])

  /// Returns the slot of a key.
  ///
  /// Cost: one hash and, on average, less than two comparisons; before ``index()``, as many as halving takes.
  func slot(for key: RecordKey) -> RecordSlot? { position(of: key).map { slot(at: $0) } }

  /// All slots, made where they were not asked for before.
  ///
  /// Cost: linear, once.
  var slots: [RecordSlot] {
    if let all = all.load() { return all.slots }
    guard let packed else { return [] }
    return all.storeIfNil(Slots(packed.allSlots())).slots
  }

  /// Whether values are in blocks with others.
  var isPacked: Bool { packed != nil }

  /// The number of slots that may have to be made before ``slots`` costs nothing.
  var unmadeCount: Int { all.isSet ? 0 : count }

  /// Makes the slots of some positions that were not asked for before: several parts at a time, so that ``slots`` has less to do.
  func makeSlots(_ positions: Range<Int>) { packed?.makeSlots(positions) }

  /// Returns the slot at a position in the order of the records.
  func slot(at position: Int) -> RecordSlot {
    if let all = all.unretained { return all._withUnsafeGuaranteedRef { $0.slots[position] } }
    return packed?.slot(at: position) ?? slots[position]
  }

  private func isKey(_ key: RecordKey, at position: Int) -> Bool {
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

  /// Returns the position behind all keys up to one, in slots that are in key order.
  func end(of key: RecordKey) -> Int { (0..<count).partitionPoint { key < self.key(at: $0) } }

  /// Returns the value of a key, decoded at the first call, to be looked at without copying it.
  ///
  /// Cost: as ``slot(for:)``. Once it was looked up, the value itself is compared where its id has a key that is cheap to make: that
  /// spares a visit to the slot, which mostly is far from any cache.
  /// - Throws: as ``RecordSlot/decoded(_:)``.
  func decoded<Item>(for key: RecordKey, _ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item>? {
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
      (self.values.load() ?? self.values.storeIfNil(ValueTable(count: count))).set(value, at: found)
    }
    return value
  }

  /// The number of slots that ``unread()`` looks at, at most.
  var doubtfulCount: Int { doubtful.withLock { $0?.count ?? count } }

  /// Returns the slots that were not decoded yet, or that do not decode.
  ///
  /// Cost: linear in the slots that the last call returned; at the first call, in all.
  func unread() -> [RecordSlot] {
    let slots = doubtful.withLock { $0 } ?? slots
    let left = slots.filter { $0.reading != .readable }
    doubtful.withLock { if left.count < $0?.count ?? .max { $0 = left } }
    return left
  }

  /// Makes the table if it was put off.
  ///
  /// Cost: linear, once.
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

  /// Returns the slots without those that have the key of another, which no backend of ours gives, and the table of their positions.
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
    return indexed(kept.enumerated().filter { !duplicates.contains($0.offset) }.map(\.element))
  }
}

/// An open-addressing table of the positions of keys in an array of slots, which does not change any more.
///
/// An entry has the position in its low bits, as many as the table's size needs, and above it bits of the key's hash: a look-up touches
/// the record that it looks for, and hardly ever another.
final class KeyTable: Sendable {
  private let entries: [UInt32]

  init(_ draft: consuming Draft) { entries = draft.entries }

  /// Returns the first result for a position that may be that of a key with this hash.
  @inline(__always)
  func first<Result>(_ hash: UInt64, _ result: (Int) -> Result?) -> Result? {
    let mask = UInt32(truncatingIfNeeded: entries.count - 1)
    var index = UInt32(truncatingIfNeeded: hash) & mask
    while true {
      let entry = entries[Int(index)]
      if entry & mask == 0 { return nil }
      if (entry ^ UInt32(truncatingIfNeeded: hash >> 32)) & ~mask == 0, let result = result(Int(entry & mask) - 1) { return result }
      index = (index + 1) & mask
    }
  }

  /// A table that is being made.
  struct Draft {
    fileprivate var entries: [UInt32]

    /// Makes a table for a number of keys: a power of two, at least twice as large, so that an empty entry is near everywhere.
    init(count: Int) {
      var size = 2
      while size < count * 2 { size *= 2 }
      entries = [UInt32](repeating: 0, count: size)
    }

    /// Adds a key that is not there yet, by its hash.
    mutating func append(_ hash: UInt64, at position: Int) { _ = insert(hash, at: position) { _ in false } }

    /// Adds a key by its hash unless it is there already, and then returns its position.
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

/// The decoded values of an array of slots by position, as far as they were looked up: a look-up reads them past the slot.
///
/// Unchecked, since the compiler does not see that the memory holds atomics only, which are never moved.
final class ValueTable: @unchecked Sendable {
  /// The addresses of the values, which their slots own; 0 where none is known.
  private let addresses: UnsafeMutablePointer<Atomic<UInt>>?

  /// Makes an empty table; memory is taken as positions are set.
  init(count: Int) {
    // Zero bytes are atomics of zero, and the system gives pages of them when they are touched; without memory there is no table.
    addresses = calloc(count, MemoryLayout<Atomic<UInt>>.stride)?.bindMemory(to: Atomic<UInt>.self, capacity: count)
  }

  deinit { free(addresses) }

  /// Returns the value at a position, if it is known.
  func value(at position: Int) -> Unmanaged<any DecodedRecord>? {
    guard let addresses else { return nil }
    return UnsafeRawPointer(bitPattern: addresses[position].load(ordering: .acquiring)).map(Unmanaged.fromOpaque)
  }

  /// Sets the value at a position, which its slot keeps as long as this is used.
  func set(_ value: Unmanaged<any DecodedRecord>, at position: Int) {
    addresses?[position].store(UInt(bitPattern: value.toOpaque()), ordering: .releasing)
  }
}
