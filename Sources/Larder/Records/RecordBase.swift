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
  /// Position + 1 of a slot, 0 where there is none; the size is a power of two, at least twice the number of slots.
  private let table: Mutex<[UInt32]?>
  /// The slots that have not been seen to decode, as of the last look; all others do for good.
  private let doubtful: Mutex<[RecordSlot]>

  /// Takes the slots; of two with one key the newer revision stays.
  init(_ slots: [RecordSlot]) {
    newestSchemaVersion = slots.reduce(0) { max($0, $1.schemaVersion) }
    oldestSchemaVersion = slots.reduce(.max) { min($0, $1.schemaVersion) }
    isSorted = zip(slots, slots.dropFirst()).allSatisfy { $0.key < $1.key }
    if isSorted {
      self.slots = slots
      table = Mutex(nil)
      doubtful = Mutex(slots)
    } else {
      let (unique, positions) = Self.indexed(slots)
      self.slots = unique
      table = Mutex(positions)
      doubtful = Mutex(unique)
    }
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
    guard let table = table.withLock({ $0 }) else { return search(key) }
    let position = table[Self.probe(table, for: key, in: slots)]
    return position == 0 ? nil : Int(position - 1)
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
  func index() {
    guard table.withLock({ $0 }) == nil else { return }
    let positions = Self.indexed(slots).positions
    table.withLock { $0 = positions }
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
  private static func indexed(_ slots: [RecordSlot]) -> (slots: [RecordSlot], positions: [UInt32]) {
    var table = [UInt32](repeating: 0, count: tableSize(slots.count))
    var kept = slots
    var duplicates: Set<Int> = []
    for (position, slot) in slots.enumerated() {
      let index = probe(table, for: slot.key, in: slots)
      if table[index] == 0 {
        table[index] = UInt32(position + 1)
      } else {
        let first = Int(table[index] - 1)
        if kept[first].revision < slot.revision { kept[first] = slot }
        duplicates.insert(position)
      }
    }
    guard !duplicates.isEmpty else { return (kept, table) }
    return indexed(kept.enumerated().filter { !duplicates.contains($0.offset) }.map(\.element))
  }

  /// Returns the position in the table that holds the key, or the empty one where it would go.
  private static func probe(_ table: [UInt32], for key: RecordKey, in slots: [RecordSlot]) -> Int {
    let mask = table.count - 1
    var index = key.hashValue & mask
    while table[index] != 0, slots[Int(table[index] - 1)].key != key { index = (index + 1) & mask }
    return index
  }

  private static func tableSize(_ count: Int) -> Int {
    var size = 2
    while size < count * 2 { size *= 2 }
    return size
  }
}
