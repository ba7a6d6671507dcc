/// The decoder of one value: its place in a text.
struct SlotDecoder: Decoder, SingleValueDecodingContainer {
  let text: DecodingText
  let entry: Int
  let path: CodingPath?

  var codingPath: [any CodingKey] { CodingPath.keys(path) }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard text.entries[entry].kind == .object else { throw text.mismatch([String: Any].self, at: entry, isContainer: true, codingPath) }
    return KeyedDecodingContainer(KeyedSlotDecoder<Key>(text: text, object: entry, path: path))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard text.entries[entry].kind == .array else { throw text.mismatch([Any].self, at: entry, isContainer: true, codingPath) }
    return UnkeyedSlotDecoder(text: text, array: entry, path: path)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

  // MARK: A single value

  func decodeNil() -> Bool { text.isNull(at: entry) }
  func decode(_ type: Bool.Type) throws -> Bool { try required(text.bool(at: entry), type) }
  func decode(_ type: String.Type) throws -> String { try required(text.string(at: entry), type) }
  func decode(_ type: Double.Type) throws -> Double { try required(text.double(at: entry), type) }
  func decode(_ type: Float.Type) throws -> Float { try required(text.float(at: entry), type) }
  func decode(_ type: Int.Type) throws -> Int { try integer(type) }
  func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
  func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
  func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
  func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
  func decode(_ type: Int128.Type) throws -> Int128 { try integer(type) }
  func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }
  func decode(_ type: UInt128.Type) throws -> UInt128 { try integer(type) }
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try text.value(type, at: entry, path)
  }

  private func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
    try required(text.integer(type, at: entry), type)
  }

  @inline(__always) private func required<Value>(_ value: Value?, _ type: Any.Type) throws -> Value {
    try text.required(value, type, at: entry, path)
  }
}
