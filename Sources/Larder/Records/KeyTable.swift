/// An open-addressing table of the positions of keys in an array of slots, which does not change any more.
///
/// An entry has the position in its low bits, as many as the table's size needs, and above it bits of the key's hash: a look-up touches
/// the record that it looks for, and hardly ever another.
final class KeyTable: Sendable {
  private let entries: [UInt32]

  init(_ draft: consuming Draft) { entries = draft.entries }

  /// Returns the position of a key's slot.
  ///
  /// Cost: one hash and, nearly always, one comparison of keys.
  func position(of key: RecordKey, in slots: [RecordSlot]) -> Int? {
    first(key.tableHash) { slots[$0].key == key ? $0 : nil }
  }

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

    /// Adds a key that is not there yet.
    mutating func append(_ key: RecordKey, at position: Int) {
      let hash = key.tableHash
      entries.withUnsafeMutableBufferPointer { entries in
        let mask = UInt32(truncatingIfNeeded: entries.count - 1)
        var index = UInt32(truncatingIfNeeded: hash) & mask
        while entries[Int(index)] & mask != 0 { index = (index + 1) & mask }
        entries[Int(index)] = UInt32(truncatingIfNeeded: hash >> 32) & ~mask | UInt32(position + 1)
      }
    }

    /// Adds a key unless it is there already, and then returns its position.
    mutating func insert(_ key: RecordKey, at position: Int, in slots: [RecordSlot]) -> Int? {
      let hash = key.tableHash
      let mask = UInt32(truncatingIfNeeded: entries.count - 1)
      var index = UInt32(truncatingIfNeeded: hash) & mask
      while entries[Int(index)] & mask != 0 {
        let other = Int(entries[Int(index)] & mask) - 1
        if (entries[Int(index)] ^ UInt32(truncatingIfNeeded: hash >> 32)) & ~mask == 0, slots[other].key == key { return other }
        index = (index + 1) & mask
      }
      entries[Int(index)] = UInt32(truncatingIfNeeded: hash >> 32) & ~mask | UInt32(position + 1)
      return nil
    }
  }
}
