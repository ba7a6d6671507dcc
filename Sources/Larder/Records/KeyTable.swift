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
