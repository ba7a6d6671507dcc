internal import Foundation
internal import Synchronization

/// All records of a collection as they were read: several packs as one, by position.
final class PackedRecords: Sendable {
  let count: Int
  /// Whether all keys ascend.
  let isSorted: Bool
  /// The oldest and the newest schema version; the largest number and 0 without records.
  let versions: (oldest: Int, newest: Int)
  /// The packs, none of them empty; none once every slot was made: their values then live as long as their slots need them.
  private let packs: Mutex<[RecordPack]>
  /// The descriptions of the records beside their values, by pack.
  private let records: [[PackedRecord]]
  /// The position of the first record of each pack, and the number of all.
  private let starts: [Int]
  /// The pack of every 256th position.
  private let directory: [UInt32]
  private let slots: SlotTable
  /// The number of slots that were not made yet, or that whoever makes them has not counted yet.
  private let unmadeCount: Atomic<Int>

  /// Whether the packs are still needed.
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

  /// Returns the pack of a position, and the position in it.
  private func place(of position: Int) -> (pack: Int, position: Int) {
    var pack = Int(directory[position >> 8])
    while starts[pack + 1] <= position { pack += 1 }
    return (pack, position - starts[pack])
  }

  /// Returns the slot at a position, made at the first call.
  func slot(at position: Int) -> RecordSlot {
    while true {
      if let slot = slots[position] { return slot }
      // Once there are no packs, every slot is there.
      guard let (pack, offset) = pack(of: position) else { continue }
      let (slot, isNew) = slots.setIfNil(Self.slot(in: pack, at: offset), at: position)
      if isNew { countMade(1) }
      return slot
    }
  }

  /// Notes that slots were made; gives up the packs after the last.
  private func countMade(_ count: Int) {
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

  /// Makes the slots of some positions that are not there yet.
  func makeSlots(_ positions: Range<Int>) {
    guard !positions.isEmpty else { return }
    let packs = packs.withLock { $0 }
    guard !packs.isEmpty else { return }
    var (pack, offset) = place(of: positions.lowerBound)
    var made = 0
    for position in positions {
      while offset == packs[pack].count { (pack, offset) = (pack + 1, 0) }
      if slots[position] == nil, slots.setIfNil(Self.slot(in: packs[pack], at: offset), at: position).isNew { made += 1 }
      offset += 1
    }
    countMade(made)
  }

  /// Returns all slots, made where they are not there yet, so that the packs are given up.
  ///
  /// Cost: linear.
  func allSlots() -> [RecordSlot] {
    makeSlots(0..<count)
    return (0..<count).map { slot(at: $0) }
  }

  // MARK: Keys

  /// Whether the record at a position has a key.
  func isKey(_ key: RecordKey, at position: Int) -> Bool {
    let (pack, offset) = place(of: position)
    let record = records[pack][offset]
    if let number = key.number { return record.isKeyedByNumber && record.number == number }
    if record.isKeyedByNumber || key.byteCount != Int(record.keyCount) { return false }
    // A slot is read without a lock.
    if let slot = slots[position] { return slot.key == key }
    return self.key(at: position) == key
  }

  /// Returns the key at a position.
  func key(at position: Int) -> RecordKey {
    let (index, offset) = place(of: position)
    if records[index][offset].isKeyedByNumber { return RecordKey(records[index][offset].number) }
    guard let (pack, offset) = pack(of: position) else { return slot(at: position).key }
    return pack.key(at: offset)
  }

  /// Visits the hash of each key, in the order of positions.
  func forEachHash(_ visit: (UInt64) -> Void) {
    let packs = packs.withLock { $0 }
    guard !packs.isEmpty else { return (0..<count).forEach { visit(key(at: $0).tableHash) } }
    for pack in packs {
      for (position, record) in pack.records.enumerated() {
        visit(record.isKeyedByNumber ? record.number.tableHash : pack.withKeyText(at: position) { RecordKey.tableHash(of: $0) })
      }
    }
  }
}

// Packed/ holds the records of a collection as they were read: their values in a few large blocks of memory, and little beside them.
// Invariant: a pack never changes, and a record in it costs no allocation of its own until it is looked up. Called by Records/,
// Engine/StoreLoader and the backends that read whole stores.

/// The description of a record in a pack, beside its value: 40 bytes.
struct PackedRecord: Sendable {
  /// The key of a UUID; zero for any other, whose text stands before the value.
  let number: UUIDNumber
  let revision: UInt64
  /// The bytes of the value in the pack's block.
  let start: UInt32
  let count: UInt32
  let schemaVersion: Int32
  /// The length of the key's text; -1 for the key of a UUID.
  let keyCount: Int32

  var isKeyedByNumber: Bool { keyCount < 0 }

  /// The range of the value in the block.
  var value: Range<Int> { Int(start)..<Int(start) + Int(count) }
  /// The range of the key's text in the block.
  var keyText: Range<Int> { Int(start) - Int(keyCount)..<Int(start) }
}

/// The slots of records by position, each made when it is first asked for.
///
/// Unchecked, since the compiler does not see that the memory holds atomics only, which are never moved.
final class SlotTable: @unchecked Sendable {
  private let count: Int
  /// The addresses of the slots, which this owns; 0 where none was made yet.
  private let addresses: UnsafeMutablePointer<Atomic<UInt>>

  init(count: Int) {
    self.count = count
    // Zero bytes are atomics of zero, and the system gives pages of them when they are touched.
    let memory = calloc(max(count, 1), MemoryLayout<Atomic<UInt>>.stride) ?? Self.zeros(max(count, 1))
    addresses = memory.bindMemory(to: Atomic<UInt>.self, capacity: max(count, 1))
  }

  /// Returns memory of zeros; as for any array, there must be some.
  private static func zeros(_ count: Int) -> UnsafeMutableRawPointer {
    let memory = UnsafeMutableRawPointer.allocate(byteCount: count * MemoryLayout<Atomic<UInt>>.stride, alignment: 8)
    memset(memory, 0, count * MemoryLayout<Atomic<UInt>>.stride)
    return memory
  }

  deinit {
    for position in 0..<count { Self.unmanaged(addresses[position].load(ordering: .acquiring))?.release() }
    free(addresses)
  }

  /// The slot at a position; `nil` before it was made.
  subscript(position: Int) -> RecordSlot? {
    Self.unmanaged(addresses[position].load(ordering: .acquiring))?.takeUnretainedValue()
  }

  /// Sets the slot at a position unless there is one.
  /// - Returns: The slot that is there now, and whether this call has set it.
  func setIfNil(_ slot: RecordSlot, at position: Int) -> (slot: RecordSlot, isNew: Bool) {
    let new = Unmanaged.passRetained(slot)
    let (isExchanged, old) = addresses[position].compareExchange(
      expected: 0, desired: UInt(bitPattern: new.toOpaque()), ordering: .acquiringAndReleasing)
    guard !isExchanged, let first = Self.unmanaged(old) else { return (slot, true) }
    new.release()
    return (first.takeUnretainedValue(), false)
  }

  private static func unmanaged(_ address: UInt) -> Unmanaged<RecordSlot>? {
    UnsafeRawPointer(bitPattern: address).map(Unmanaged.fromOpaque)
  }
}
