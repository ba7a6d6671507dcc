/// A decoded value behind one reference: handed on and looked at without a copy of what it holds.
final class DecodedValue<Item: Sendable>: Sendable {
  let item: Item

  init(_ item: Item) { self.item = item }

  /// Returns a copy of the value.
  ///
  /// Not inlined: here the type is known from the object, and elsewhere it would be looked up by its parameter, which takes longer than
  /// the copy.
  @inline(never) func copy() -> Item { item }
}

extension DecodedValue where Item: Codable & Identifiable, Item.ID: Hashable & Codable & Sendable {
  /// Whether the value is that of a key, as its id says.
  ///
  /// Not inlined, as ``copy()``.
  @inline(never) func isOf(_ key: RecordKey, _ keys: KeyCoder<Item.ID>) -> Bool { keys.isKey(key, of: item.id) }
}

/// A decoded value of whatever type; always a ``DecodedValue``.
typealias DecodedRecord = AnyObject & Sendable
