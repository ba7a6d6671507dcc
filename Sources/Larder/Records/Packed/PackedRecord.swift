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
