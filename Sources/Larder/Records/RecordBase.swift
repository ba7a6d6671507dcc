internal import Foundation
internal import Synchronization

/// An immutable set of a collection's records, made when the store was opened or when later changes were merged in (a rebase).
///
/// Opening a store must cost only a scan of its files and little memory. A base therefore keeps the records in the form in which the
/// backend has read them. The slot of a record (its object in memory) is made when the record is looked up. An open-addressing hash table
/// finds the positions of keys. If the records are in key order, as in a JSON file, keys are found by binary search until ``index()`` has
/// made the table. Later changes of records go into the tree that ``RecordMap`` keeps over the base.
final class RecordBase: Sendable {
  let count: Int
  /// Whether the records of the base are in key order.
  let isSorted: Bool
  /// Newest schema version among the records, or 0 if there are no records.
  let newestSchemaVersion: Int
  /// Oldest schema version among the records, or the largest integer if there are no records.
  let oldestSchemaVersion: Int
  /// The records as a backend has read them, or `nil` for a base that was made of slots (objects of records in memory).
  private let packed: PackedRecords?
  /// The records in the storage, or `nil` for a base whose records are in memory.
  ///
  /// A base with records in the storage has no slots and no positions.
  let paged: PagedRecords?
  /// All slots (objects of records in memory), once a caller has read ``slots``.
  private let all = LazyReference<Slots>()
  /// Hash table of the positions of the keys.
  ///
  /// If the records are in key order, the hash table is missing until ``index()`` is called.
  private let table = LazyReference<KeyTable>()
  /// Decoded values of the records that were looked up.
  private let values = LazyReference<ValueTable>()
  /// Slots whose records had not decoded at the last call of ``unread()``, or `nil` before the first call.
  ///
  /// The record of every slot that is missing in `doubtful` has decoded, and a record that has decoded stays decoded.
  private let doubtful = Mutex<[RecordSlot]?>(nil)

  private final class Slots: Sendable {
    let slots: [RecordSlot]
    init(_ slots: [RecordSlot]) { self.slots = slots }
  }

  /// Makes a base of slots (objects of records in memory), and keeps the newer of two slots with the same key.
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
    (packed, paged) = (nil, nil)
    var unique = slots
    // Ascending keys are unique, so the search for duplicates is needed only if the slots are out of order.
    if !isSorted {
      let keys: KeyTable
      (unique, keys) = Self.indexed(slots)
      table.storeIfNil(keys)
    }
    count = unique.count
    all.storeIfNil(Slots(unique))
  }

  /// Makes a base of records in the form in which a backend has read them.
  private init(_ packed: PackedRecords, _ keys: KeyTable?) {
    (count, isSorted) = (packed.count, packed.isSorted)
    (newestSchemaVersion, oldestSchemaVersion) = (packed.versions.newest, packed.versions.oldest)
    (self.packed, paged) = (packed, nil)
    if let keys { table.storeIfNil(keys) }
  }

  /// Makes a base of records that stay in the storage, of which the backend knows the number and the schema versions.
  init(_ paged: PagedRecords, count: Int, versions: (oldest: Int, newest: Int)) {
    (self.count, isSorted, packed, self.paged) = (count, true, nil, paged)
    (newestSchemaVersion, oldestSchemaVersion) = (versions.newest, versions.oldest)
  }

  /// Makes a base of packs (blocks of records that a backend has read), and keeps the newer of two records with the same key.
  static func of(_ packs: [RecordPack]) -> RecordBase {
    let packed = PackedRecords(packs)
    // Ascending keys are unique and found by binary search, so a base with ascending keys has no hash table until `index()` is called.
    if packed.isSorted { return RecordBase(packed, nil) }
    var keys = KeyTable.Draft(count: packed.count)
    var (position, hasDuplicates) = (0, false)
    packed.forEachHash { hash in
      if keys.insert(hash, at: position, isSame: { packed.isKey(packed.key(at: position), at: $0) }) != nil { hasDuplicates = true }
      position += 1
    }
    // If a key occurs twice, the base is made of slots, whose revisions show which of the two records is newer.
    return hasDuplicates ? RecordBase(packed.allSlots()) : RecordBase(packed, KeyTable(keys))
  }

  static let empty = RecordBase([])

  /// Returns the slot (the record's object in memory) of a key, or `nil` if the base has no record with this key.
  ///
  /// Cost: one hash and, on average, less than two comparisons of keys. Without a hash table, the look-up is a binary search. A record that
  /// is neither in memory nor in the cache is read from the storage.
  /// - Throws: The errors of ``PagedRecords/slot(for:)``, and no error if the records are in memory.
  func slot(for key: RecordKey) throws(RepositoryError) -> RecordSlot? {
    if let position = position(of: key) { return slot(at: position) }
    return try paged?.slot(for: key)
  }

  /// All slots (objects of records in memory) of the base.
  ///
  /// The first read of `slots` makes the slots that are missing.
  ///
  /// Cost: the first read is linear in the number of records.
  var slots: [RecordSlot] {
    if let all = all.load() { return all.slots }
    guard let packed else { return [] }
    return all.storeIfNil(Slots(packed.allSlots())).slots
  }

  /// Whether the values of several records share blocks of memory.
  var isPacked: Bool { packed != nil }

  /// Largest number of slots that the next read of ``slots`` has to make.
  var unmadeCount: Int { all.isSet || paged != nil ? 0 : count }

  /// Makes the missing slots for a range of positions, so that a later read of ``slots`` makes fewer slots.
  ///
  /// Several tasks may make the slots of different ranges at the same time.
  func makeSlots(_ positions: Range<Int>) { packed?.makeSlots(positions) }

  /// Returns the slot (the record's object in memory) at a position in the order of the records.
  func slot(at position: Int) -> RecordSlot {
    // Reading `unretained` does not change a reference count. With a counted reference to the slots, readers on several cores would contend
    // for one counter.
    if let all = all.unretained { return all._withUnsafeGuaranteedRef { $0.slots[position] } }
    return packed?.slot(at: position) ?? slots[position]
  }

  private func isKey(_ key: RecordKey, at position: Int) -> Bool {
    // The bytes of the key in the pack, a block of records, are compared directly, so that the comparison makes no slot.
    if let packed { return packed.isKey(key, at: position) }
    return slot(at: position).key == key
  }

  private func key(at position: Int) -> RecordKey { packed?.key(at: position) ?? slot(at: position).key }

  /// Returns the position of a key's slot in ``slots``, or `nil` if the base has no record with this key.
  ///
  /// Cost: the cost of ``slot(for:)``.
  func position(of key: RecordKey) -> Int? {
    guard let table = table.unretained else { return search(key) }
    return table._withUnsafeGuaranteedRef { $0.first(key.tableHash) { isKey(key, at: $0) ? $0 : nil } }
  }

  /// Returns the position after all keys up to the given key, in a base that is in key order.
  func end(of key: RecordKey) -> Int { (0..<count).partitionPoint { key < self.key(at: $0) } }

  /// Returns the value of a key behind a reference, without copying the value, and decodes it at the first call.
  ///
  /// Cost: the cost of ``slot(for:)``. If a key is cheap to make from an id, a value that was looked up before is recognised by its own id.
  /// A look-up that recognises the value does not read the slot, whose memory is mostly not in the processor's cache.
  ///
  /// - Throws: The errors of ``RecordSlot/decoded(_:)``.
  func decoded<Item>(for key: RecordKey, _ coder: RecordCoder<Item>) throws(RepositoryError) -> DecodedValue<Item>? {
    // To compare a value's id with the key, a key is made from the id. If making a key is not cheap, reading the slot takes less time than
    // making a key.
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
      // The table of values is made at the first look-up and not at opening, because the table takes eight bytes for each record.
      (self.values.load() ?? self.values.storeIfNil(ValueTable(count: count))).set(value, at: found)
    }
    return value
  }

  /// Largest number of slots that ``unread()`` examines.
  var doubtfulCount: Int { (paged.map(\.doubtfulCount) ?? doubtful.withLock { $0?.count }) ?? count }

  /// Returns the slots of the records that were not decoded yet or that do not decode.
  ///
  /// Cost: linear in the number of slots that the last call of `unread()` has returned. The first call examines all slots.
  func unread() -> [RecordSlot] {
    // The first call of `unread()` examines every slot. A later call examines only the slots that the call before it has returned.
    let slots = doubtful.withLock { $0 } ?? slots
    let left = slots.filter { $0.reading != .readable }
    // Two calls of `unread()` may run at the same time. The shorter of their two results is stored, because a record that has decoded stays
    // decoded.
    doubtful.withLock { if left.count < $0?.count ?? .max { $0 = left } }
    return left
  }

  /// Makes the hash table of the positions of the keys, if the base has none yet.
  func index() {
    guard !table.isSet, paged == nil else { return }
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
    if paged != nil { return nil }
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self.key(at: middle) < key { low = middle + 1 } else { high = middle }
    }
    return low < count && isKey(key, at: low) ? low : nil
  }

  /// Returns one slot for each key, and the hash table of the positions of the slots.
  ///
  /// Of two slots with the same key, the newer one is kept. None of Larder's own backends returns a key twice.
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
    // Without the duplicates, later slots have other positions, so the hash table is made again for the slots that are left.
    return indexed(kept.enumerated().filter { !duplicates.contains($0.offset) }.map(\.element))
  }
}

/// An immutable open-addressing hash table from keys to positions in an array of slots.
///
/// An entry of the table is one 32-bit number. The low bits of an entry hold the position, as many bits as the table's size needs, and the
/// high bits of an entry hold bits of the key's hash. The hash bits in an entry rule out nearly every other key, so a look-up reads the
/// record that it searches for and hardly ever another record.
final class KeyTable: Sendable {
  private let entries: [UInt32]

  init(_ draft: consuming Draft) { entries = draft.entries }

  /// Calls a closure with each position whose key may have the given hash, and returns the first result that is not `nil`.
  @inline(__always)
  func first<Result>(_ hash: UInt64, _ result: (Int) -> Result?) -> Result? {
    let mask = UInt32(truncatingIfNeeded: entries.count - 1)
    var index = UInt32(truncatingIfNeeded: hash) & mask
    while true {
      let entry = entries[Int(index)]
      // An entry holds its position plus one, so zero in the low bits marks an empty entry. At least half of all entries are empty.
      if entry & mask == 0 { return nil }
      if (entry ^ UInt32(truncatingIfNeeded: hash >> 32)) & ~mask == 0, let result = result(Int(entry & mask) - 1) { return result }
      index = (index + 1) & mask
    }
  }

  /// A hash table of keys that is being built.
  struct Draft {
    fileprivate var entries: [UInt32]

    /// Makes an empty table for a number of keys.
    ///
    /// The size of the table is a power of two and at least twice the number of keys. At least half of the entries are therefore empty, so
    /// a search for a missing key soon meets an empty entry and ends.
    init(count: Int) {
      var size = 2
      while size < count * 2 { size *= 2 }
      entries = [UInt32](repeating: 0, count: size)
    }

    /// Adds a key to the hash table by the hash of the key.
    ///
    /// The hash table must not contain the key yet.
    mutating func append(_ hash: UInt64, at position: Int) { _ = insert(hash, at: position) { _ in false } }

    /// Adds a key by its hash and returns `nil`, or returns the position of the same key if the table already holds it.
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

/// The decoded values of records by position, from which a look-up reads a value without reading the record's slot (its object in memory).
///
/// The type is `@unchecked Sendable`, since the compiler cannot prove that the memory holds only atomics, which are never moved.
final class ValueTable: @unchecked Sendable {
  /// Addresses of the decoded values, which the slots of their records own, or 0 where no value was set.
  private let addresses: UnsafeMutablePointer<Atomic<UInt>>?

  /// Makes an empty table, whose pages take memory only when a value is set in them.
  init(count: Int) {
    // Zero bytes are valid atomics. The system provides a page of memory from `calloc` only when the page is touched. If `calloc` fails,
    // look-ups read the slots and not this table.
    addresses = calloc(count, MemoryLayout<Atomic<UInt>>.stride)?.bindMemory(to: Atomic<UInt>.self, capacity: count)
  }

  deinit { free(addresses) }

  /// Returns the decoded value at a position, or `nil` if no look-up has set the value yet.
  func value(at position: Int) -> Unmanaged<any DecodedRecord>? {
    guard let addresses else { return nil }
    return UnsafeRawPointer(bitPattern: addresses[position].load(ordering: .acquiring)).map(Unmanaged.fromOpaque)
  }

  /// Sets the decoded value of the record at a position.
  ///
  /// The table of values does not own the value. The record's slot, which owns the value, must live as long as the table is used.
  func set(_ value: Unmanaged<any DecodedRecord>, at position: Int) {
    // The releasing order makes the contents of the value visible to every reader that finds its address.
    addresses?[position].store(UInt(bitPattern: value.toOpaque()), ordering: .releasing)
  }
}
