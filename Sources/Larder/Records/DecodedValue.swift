/// A decoded value behind one reference: handed on and looked at without a copy of what it holds.
final class DecodedValue<Item: Sendable>: DecodedRecord {
  let item: Item

  init(_ item: Item) { self.item = item }
}

/// A decoded value of whatever type; always a ``DecodedValue``.
protocol DecodedRecord: AnyObject, Sendable {}
