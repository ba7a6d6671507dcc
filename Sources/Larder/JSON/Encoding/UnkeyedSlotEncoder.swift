/// The elements of an array that is being encoded.
struct UnkeyedSlotEncoder: UnkeyedEncodingContainer {
  let writer: EncodingWriter
  let slot: Int
  let serial: Int

  var codingPath: [any CodingKey] { writer.path(to: slot) }
  var count: Int { writer.slots.indices.contains(slot) && writer.slots[slot].serial == serial ? writer.slots[slot].count : 0 }

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
    try whole { try writer.write(value, step) }
  }
  func encode(_ value: Float) throws {
    try begin()
    try whole { try writer.write(fraction: value, step) }
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
    try whole { try writer.encode(value, step) }
  }

  // MARK: What is written elsewhere

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
    added().container(keyedBy: type)
  }
  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { added().unkeyedContainer() }
  func superEncoder() -> any Encoder { added() }

  private func added() -> SlotEncoder {
    do { try begin() } catch { return writer.detached() }
    return writer.addChild(step).outermost
  }

  // MARK: Elements

  /// The step to the element that was begun.
  private var step: EncodingWriter.Step { .position(writer.slots[slot].count - 1) }

  @inline(__always) private func begin() throws {
    try writer.check(slot, serial)
    writer.beginElement()
  }

  private func integer(_ value: some FixedWidthInteger) throws {
    try begin()
    writer.write(value)
  }

  /// Writes a value, or takes its element back.
  @inline(__always) private func whole(_ write: () throws -> Void) throws {
    do {
      try write()
    } catch {
      writer.removeElement()
      throw error
    }
  }
}
