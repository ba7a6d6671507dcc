/// An encoder of one unfinished value in the text of an ``EncodingWriter``.
///
/// A slot is the writer's entry for one unfinished value.
struct SlotEncoder: Encoder, SingleValueEncodingContainer {
  let writer: EncodingWriter
  let slot: Int
  let serial: Int

  var codingPath: [any CodingKey] { writer.path(to: slot) }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    writer.open(.object, in: slot, serial: serial)
    return KeyedEncodingContainer(KeyedSlotEncoder<Key>(writer: writer, slot: slot, serial: serial))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    writer.open(.array, in: slot, serial: serial)
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

  /// Marks the unfinished value as a single value, which the caller writes next.
  private func begin() throws {
    try writer.check(slot, serial)
    // A second value would follow the first value without a comma, and the text would not be valid JSON.
    guard writer.slots[slot].content == .nothing else { throw writer.misused("a second value was encoded in the place of one") }
    writer.slots[slot].content = .value
  }

  /// Writes a single value, and marks the unfinished value as empty again if writing throws.
  private func ended(_ write: () throws -> Void) throws {
    do {
      try write()
    } catch {
      // The type's `encode(to:)` may catch the error and encode another value instead. `begin()` would throw if the unfinished value were
      // not marked as empty.
      writer.slots[slot].content = .nothing
      throw error
    }
  }
}

/// A keyed encoding container that writes the members of one JSON object.
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

  // MARK: Nested containers and superclasses

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested> {
    nested(key).container(keyedBy: type)
  }
  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { nested(key).unkeyedContainer() }
  func superEncoder() -> any Encoder { added(PlainCodingKey.super) }
  func superEncoder(forKey key: Key) -> any Encoder { added(key) }

  /// Returns the encoder of a nested container, which continues the existing member of the same name, if there is one.
  private func nested(_ key: Key) -> SlotEncoder {
    if writer.isCurrent(slot, serial), let child = writer.child(named: key.stringValue, .key(key)) { return child.outermost }
    return added(key)
  }

  private func added(_ key: some CodingKey) -> SlotEncoder {
    do {
      try writer.check(slot, serial)
      writer.beginMember(key.stringValue)
    } catch {
      // The protocol's functions that return a container cannot throw, so `detached()` records the failure, and the encoding fails at its
      // end.
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

  /// Writes a member's value, and removes the member again if writing throws.
  @inline(__always) private func whole(_ write: () throws -> Void) throws {
    do {
      try write()
    } catch {
      // The type's `encode(to:)` may catch the error and continue, and a member name without a value is not valid JSON.
      writer.removeMember()
      throw error
    }
  }
}

/// An unkeyed encoding container that writes the elements of one JSON array.
struct UnkeyedSlotEncoder: UnkeyedEncodingContainer {
  let writer: EncodingWriter
  let slot: Int
  let serial: Int

  var codingPath: [any CodingKey] { writer.path(to: slot) }
  // If a type uses a container after its value was finished, the container's slot is gone or belongs to another value, so the count is 0.
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

  // MARK: Nested containers and superclasses

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

  /// The coding-path step to the array element that was begun last.
  private var step: EncodingWriter.Step { .position(writer.slots[slot].count - 1) }

  @inline(__always) private func begin() throws {
    try writer.check(slot, serial)
    writer.beginElement()
  }

  private func integer(_ value: some FixedWidthInteger) throws {
    try begin()
    writer.write(value)
  }

  /// Writes an element of the array, and removes the element's comma and count again if writing throws.
  @inline(__always) private func whole(_ write: () throws -> Void) throws {
    do {
      try write()
    } catch {
      // The type's `encode(to:)` may catch the error and continue, and a comma that no element follows is not valid JSON.
      writer.removeElement()
      throw error
    }
  }
}
