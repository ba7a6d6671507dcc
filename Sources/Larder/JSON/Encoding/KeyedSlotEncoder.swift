/// The members of an object that is being encoded.
struct KeyedSlotEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let writer: EncodingWriter
  let slot: Int
  let serial: Int

  var codingPath: [any CodingKey] { writer.path(to: slot) }

  func encodeNil(forKey key: Key) throws {
    try begin(key)
    writer.writeNull()
  }
  func encode(_ value: Bool, forKey key: Key) throws {
    try begin(key)
    writer.write(value)
  }
  func encode(_ value: String, forKey key: Key) throws {
    try begin(key)
    writer.bytes.append(quoting: value)
  }
  func encode(_ value: Double, forKey key: Key) throws {
    try begin(key)
    try whole { try writer.write(value, .key(key)) }
  }
  func encode(_ value: Float, forKey key: Key) throws {
    try begin(key)
    try whole { try writer.write(fraction: value, .key(key)) }
  }
  func encode(_ value: Int, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: Int8, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: Int16, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: Int32, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: Int64, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: UInt, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: UInt8, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: UInt16, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: UInt32, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: UInt64, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: Int128, forKey key: Key) throws {
    try begin(key)
    writer.write(wide: value)
  }
  func encode(_ value: UInt128, forKey key: Key) throws {
    try begin(key)
    writer.write(wide: value)
  }
  func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
    try begin(key)
    try whole { try writer.encode(value, .key(key)) }
  }

  // MARK: What is written elsewhere

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested> {
    nested(key).container(keyedBy: type)
  }
  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { nested(key).unkeyedContainer() }
  func superEncoder() -> any Encoder { added(PlainCodingKey.super) }
  func superEncoder(forKey key: Key) -> any Encoder { added(key) }

  /// Returns the encoder of a nested container: that of the member with this name, if there is one.
  private func nested(_ key: Key) -> SlotEncoder {
    if writer.isCurrent(slot, serial), let child = writer.child(named: key.stringValue, .key(key)) { return child.outermost }
    return added(key)
  }

  private func added(_ key: some CodingKey) -> SlotEncoder {
    do {
      try writer.check(slot, serial)
      writer.beginMember(key.stringValue)
    } catch {
      return writer.detached()
    }
    return writer.addChild(.key(key)).outermost
  }

  // MARK: Members

  @inline(__always) private func begin(_ key: Key) throws {
    try writer.check(slot, serial)
    writer.beginMember(key.stringValue)
  }

  private func integer(_ value: some FixedWidthInteger, _ key: Key) throws {
    try begin(key)
    writer.write(value)
  }

  /// Writes a value, or takes its member back.
  @inline(__always) private func whole(_ write: () throws -> Void) throws {
    do {
      try write()
    } catch {
      writer.removeMember()
      throw error
    }
  }
}
