/// The encoder of one value: its place in the text of an ``EncodingWriter``.
struct SlotEncoder: Encoder, SingleValueEncodingContainer {
  let writer: EncodingWriter
  let slot: Int
  let serial: Int

  var codingPath: [any CodingKey] { writer.path(to: slot) }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    writer.open(.object, slot, serial)
    return KeyedEncodingContainer(KeyedSlotEncoder<Key>(writer: writer, slot: slot, serial: serial))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    writer.open(.array, slot, serial)
    return UnkeyedSlotEncoder(writer: writer, slot: slot, serial: serial)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  // MARK: A single value

  func encodeNil() throws {
    try begin()
    writer.writeNull()
  }
  func encode(_ value: Bool) throws {
    try begin()
    writer.write(value)
  }
  func encode(_ value: String) throws {
    try begin()
    writer.bytes.append(quoting: value)
  }
  func encode(_ value: Double) throws {
    try begin()
    try ended { try writer.write(value, .none) }
  }
  func encode(_ value: Float) throws {
    try begin()
    try ended { try writer.write(fraction: value, .none) }
  }
  func encode(_ value: Int) throws { try integer(value) }
  func encode(_ value: Int8) throws { try integer(value) }
  func encode(_ value: Int16) throws { try integer(value) }
  func encode(_ value: Int32) throws { try integer(value) }
  func encode(_ value: Int64) throws { try integer(value) }
  func encode(_ value: UInt) throws { try integer(value) }
  func encode(_ value: UInt8) throws { try integer(value) }
  func encode(_ value: UInt16) throws { try integer(value) }
  func encode(_ value: UInt32) throws { try integer(value) }
  func encode(_ value: UInt64) throws { try integer(value) }
  func encode(_ value: Int128) throws {
    try begin()
    writer.write(wide: value)
  }
  func encode(_ value: UInt128) throws {
    try begin()
    writer.write(wide: value)
  }
  func encode<Value: Encodable>(_ value: Value) throws {
    try begin()
    try ended { try writer.encode(value, .none) }
  }

  private func integer(_ value: some FixedWidthInteger) throws {
    try begin()
    writer.write(value)
  }

  /// Begins the one value of the slot.
  private func begin() throws {
    try writer.check(slot, serial)
    guard writer.slots[slot].content == .nothing else { throw writer.misused("a second value was encoded in the place of one") }
    writer.slots[slot].content = .value
  }

  /// Writes the value, or leaves the slot free again for another.
  private func ended(_ write: () throws -> Void) throws {
    do {
      try write()
    } catch {
      writer.slots[slot].content = .nothing
      throw error
    }
  }
}
