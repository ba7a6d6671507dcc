// Packed/ holds the records of a collection as they were read: their keys and values in a few large blocks of memory.
// Invariant: a pack (a block of records) never changes, and a record in a pack costs no allocation of its own until it is looked up.
// Called by Records/, by `StoreLoader` in Engine/, and by the backends that read whole stores.

internal import Foundation
internal import Synchronization

/// The records of a collection as they were read when the store opened, numbered by position over several packs (blocks of records).
///
/// A pack (``RecordPack``) holds many records in one block of memory. The slot of a record (``RecordSlot``), the object that holds the
/// record in memory, is made when the record is first looked up.
final class PackedRecords: Sendable {
  let count: Int
  /// Whether the keys of the records ascend over all packs.
  let isSorted: Bool
  /// Oldest and newest schema version of the records, or the largest integer and 0 if there are no records.
  let versions: (oldest: Int, newest: Int)
  /// The packs that have records, or an empty array once every record has a slot (its object in memory).
  ///
  /// After the array is emptied, the memory block of a pack is freed as soon as no slot holds a value in the block.
  private let packs: Mutex<[RecordPack]>
  /// Descriptions of the records, one array for each pack.
  private let records: [[PackedRecord]]
  /// Position of each pack's first record, followed by the number of all records.
  private let starts: [Int]
  /// For every 256th position, the number of its pack, at which the search for the pack of that or a later position begins.
  private let directory: [UInt32]
  private let slots: SlotTable
  /// Number of records without a slot, and of slots that were made and are not subtracted from this number yet.
  private let unmadeCount: Atomic<Int>

  /// Whether the packs (blocks of records) are still held in memory.
  var holdsPacks: Bool { packs.withLock { !$0.isEmpty } }

  init(_ packs: [RecordPack]) {
    let packs = packs.filter { !$0.records.isEmpty }
    var starts: [Int] = []
    var (count, isSorted, versions) = (0, true, (oldest: Int.max, newest: 0))
    var last: RecordKey?
    for pack in packs {
      starts.append(count)
      count += pack.count
      versions = (min(versions.oldest, pack.versions.oldest), max(versions.newest, pack.versions.newest))
      if let last, !(last < pack.key(at: 0)) { isSorted = false }
      isSorted = isSorted && pack.isSorted
      last = pack.key(at: pack.count - 1)
    }
    slots = SlotTable(count: count)
    var unmadeCount = count
    for (pack, start) in zip(packs, starts) {
      // A record that was refused because it is over a limit of the options has a slot from the start, because the block of its pack does
      // not hold its value.
      for refused in pack.refused where slots.setIfNil(refused.slot, at: start + refused.position).isNew { unmadeCount -= 1 }
    }
    var directory: [UInt32] = []
    var pack = 0
    for position in stride(from: 0, to: count, by: 256) {
      while pack + 1 < starts.count, starts[pack + 1] <= position { pack += 1 }
      directory.append(UInt32(pack))
    }
    records = packs.map(\.records)
    self.packs = Mutex(unmadeCount > 0 ? packs : [])
    self.unmadeCount = Atomic(unmadeCount)
    (self.count, self.isSorted, self.versions) = (count, isSorted, versions)
    (self.starts, self.directory) = (starts + [count], directory)
  }

  /// Returns the number of the pack that holds a position, and the position within that pack.
  private func place(of position: Int) -> (pack: Int, position: Int) {
    var pack = Int(directory[position >> 8])
    while starts[pack + 1] <= position { pack += 1 }
    return (pack, position - starts[pack])
  }

  /// Returns the slot (the record's object in memory) at a position, and makes the slot at the first call.
  func slot(at position: Int) -> RecordSlot {
    while true {
      if let slot = slots[position] { return slot }
      // `pack(of:)` returns `nil` only after every slot was made, so the next round of the loop finds the slot in `slots`.
      guard let (pack, offset) = pack(of: position) else { continue }
      // Two readers may make the same slot at the same time. `setIfNil` returns to both readers the slot that was set first.
      let (slot, isNew) = slots.setIfNil(Self.slot(in: pack, at: offset), at: position)
      if isNew { countMade(1) }
      return slot
    }
  }

  /// Subtracts the number of slots that were made from `unmadeCount`, and releases the packs after the last slot.
  private func countMade(_ count: Int) {
    // With the acquire-release ordering, a reader that finds no packs sees every slot that was set before the packs were released.
    if count > 0, unmadeCount.subtract(count, ordering: .acquiringAndReleasing).newValue == 0 { packs.withLock { $0 = [] } }
  }

  private func pack(of position: Int) -> (RecordPack, Int)? {
    let place = place(of: position)
    return packs.withLock { $0.isEmpty ? nil : ($0[place.pack], place.position) }
  }

  private static func slot(in pack: RecordPack, at position: Int) -> RecordSlot {
    let record = pack.records[position]
    return RecordSlot(
      key: pack.key(at: position), revision: Revision(record.revision), schemaVersion: Int(record.schemaVersion),
      value: pack.value(at: position))
  }

  /// Makes the missing slots (objects of records in memory) for a range of positions.
  func makeSlots(_ positions: Range<Int>) {
    guard !positions.isEmpty else { return }
    // The local copy of the array keeps the packs in memory if another task makes the last slot meanwhile and releases the packs.
    let packs = packs.withLock { $0 }
    guard !packs.isEmpty else { return }
    var (pack, offset) = place(of: positions.lowerBound)
    var made = 0
    for position in positions {
      while offset == packs[pack].count { (pack, offset) = (pack + 1, 0) }
      if slots[position] == nil, slots.setIfNil(Self.slot(in: packs[pack], at: offset), at: position).isNew { made += 1 }
      offset += 1
    }
    // The slots are counted once for the whole range: several cores make slots at the same time and would contend for `unmadeCount`.
    countMade(made)
  }

  /// Returns the slots (objects in memory) of all records, and makes the missing slots.
  ///
  /// After `allSlots()`, every record has a slot, so the packs are released. Cost: linear in the records.
  func allSlots() -> [RecordSlot] {
    makeSlots(0..<count)
    return (0..<count).map { slot(at: $0) }
  }

  // MARK: Keys

  /// Whether the record at a position has the given key.
  func isKey(_ key: RecordKey, at position: Int) -> Bool {
    let (pack, offset) = place(of: position)
    let record = records[pack][offset]
    if let number = key.number { return record.isKeyedByNumber && record.number == number }
    // Most keys that differ from `key` differ in form or length, so the text of their records need not be read.
    if record.isKeyedByNumber || key.byteCount != Int(record.keyCount) { return false }
    // A slot (the object of a record) holds the key and is read without the lock of the packs.
    if let slot = slots[position] { return slot.key == key }
    return self.key(at: position) == key
  }

  /// Returns the key of the record at a position.
  func key(at position: Int) -> RecordKey {
    let (index, offset) = place(of: position)
    if records[index][offset].isKeyedByNumber { return RecordKey(records[index][offset].number) }
    guard let (pack, offset) = pack(of: position) else { return slot(at: position).key }
    return pack.key(at: offset)
  }

  /// Calls a closure with the hash of each key, in the order of positions.
  func forEachHash(_ visit: (UInt64) -> Void) {
    let packs = packs.withLock { $0 }
    guard !packs.isEmpty else { return (0..<count).forEach { visit(key(at: $0).tableHash) } }
    for pack in packs {
      for (position, record) in pack.records.enumerated() {
        // The hash of a text key is made from the bytes in the block, without making a string.
        visit(record.isKeyedByNumber ? record.number.tableHash : pack.withKeyText(at: position) { RecordKey.tableHash(of: $0) })
      }
    }
  }
}

/// The description of one record in a pack: 40 bytes, with the position of the value in the pack's block of memory.
struct PackedRecord: Sendable {
  /// The key as the number of a UUID, or zero for any other key, whose text is in the block before the value.
  let number: UUIDNumber
  let revision: UInt64
  /// Offset of the value in the pack's block.
  let start: UInt32
  /// Length of the value in bytes, or the largest number for a value that is kept outside the block.
  let count: UInt32
  let schemaVersion: Int32
  /// Length of the key's text in bytes, or -1 for the key of a UUID, which has no text in the block.
  let keyCount: Int32

  var isKeyedByNumber: Bool { keyCount < 0 }

  /// Range of the value in the pack's block.
  var value: Range<Int> { Int(start)..<Int(start) + Int(count) }
  /// Range of the key's text in the pack's block.
  var keyText: Range<Int> { Int(start) - Int(keyCount)..<Int(start) }
}

/// A table of record slots (objects of records in memory) by position, each of which is set at most once.
///
/// The type is `@unchecked Sendable`, since the compiler cannot prove that the memory holds only atomics, which are never moved.
final class SlotTable: @unchecked Sendable {
  private let count: Int
  /// Addresses of the slots, which the table owns, or 0 for a slot that was not made yet.
  private let addresses: UnsafeMutablePointer<Atomic<UInt>>

  init(count: Int) {
    self.count = count
    // Zero bytes are valid atomics. The system provides a page of memory from `calloc` only when the page is touched, so slots not yet made
    // cost little.
    let memory = calloc(max(count, 1), MemoryLayout<Atomic<UInt>>.stride) ?? Self.zeros(max(count, 1))
    addresses = memory.bindMemory(to: Atomic<UInt>.self, capacity: max(count, 1))
  }

  /// Allocates zeroed memory after `calloc` has failed, and traps if the system has no memory, as Swift's `Array` does.
  private static func zeros(_ count: Int) -> UnsafeMutableRawPointer {
    let memory = UnsafeMutableRawPointer.allocate(byteCount: count * MemoryLayout<Atomic<UInt>>.stride, alignment: 8)
    memset(memory, 0, count * MemoryLayout<Atomic<UInt>>.stride)
    return memory
  }

  deinit {
    for position in 0..<count { Self.unmanaged(addresses[position].load(ordering: .acquiring))?.release() }
    free(addresses)
  }

  /// The record slot at a position, or `nil` before the slot was made.
  subscript(position: Int) -> RecordSlot? {
    Self.unmanaged(addresses[position].load(ordering: .acquiring))?.takeUnretainedValue()
  }

  /// Sets the record slot at a position unless a slot was set at this position before.
  ///
  /// - Returns: The slot that the table holds after the call, and whether it is the given slot.
  func setIfNil(_ slot: RecordSlot, at position: Int) -> (slot: RecordSlot, isNew: Bool) {
    let new = Unmanaged.passRetained(slot)
    let (isExchanged, old) = addresses[position].compareExchange(
      expected: 0, desired: UInt(bitPattern: new.toOpaque()), ordering: .acquiringAndReleasing)
    guard !isExchanged, let first = Self.unmanaged(old) else { return (slot, true) }
    // Another thread has set its slot first. The table does not keep the given slot, so the retained reference to it is released.
    new.release()
    return (first.takeUnretainedValue(), false)
  }

  private static func unmanaged(_ address: UInt) -> Unmanaged<RecordSlot>? {
    UnsafeRawPointer(bitPattern: address).map(Unmanaged.fromOpaque)
  }
}
