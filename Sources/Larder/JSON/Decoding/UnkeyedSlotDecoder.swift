/// The elements of an array that is being decoded.
struct UnkeyedSlotDecoder: UnkeyedDecodingContainer {
  private let text: DecodingText
  private let array: Int
  private let path: CodingPath?
  private var entry: Int
  private(set) var currentIndex = 0

  init(text: DecodingText, array: Int, path: CodingPath?) {
    (self.text, self.array, self.path) = (text, array, path)
    entry = array + 1
  }

  var codingPath: [any CodingKey] { CodingPath.keys(path) }
  var count: Int? { Int(text.entries[array].length) }
  var isAtEnd: Bool { currentIndex == text.entries[array].length }

  mutating func decodeNil() throws -> Bool {
    guard text.isNull(at: try next(Never.self)) else { return false }
    advance()
    return true
  }
  mutating func decode(_ type: Bool.Type) throws -> Bool { try element(type) { $0.bool(at: $1) } }
  mutating func decode(_ type: String.Type) throws -> String { try element(type) { $0.string(at: $1) } }
  mutating func decode(_ type: Double.Type) throws -> Double { try element(type) { $0.double(at: $1) } }
  mutating func decode(_ type: Float.Type) throws -> Float { try element(type) { $0.float(at: $1) } }
  mutating func decode(_ type: Int.Type) throws -> Int { try integer(type) }
  mutating func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
  mutating func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
  mutating func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
  mutating func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
  mutating func decode(_ type: Int128.Type) throws -> Int128 { try integer(type) }
  mutating func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
  mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
  mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
  mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
  mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }
  mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try integer(type) }
  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let value = try text.value(type, at: next(type), step)
    advance()
    return value
  }

  // MARK: Containers

  mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) throws -> KeyedDecodingContainer<Nested> {
    let container = try nested(KeyedDecodingContainer<Nested>.self).container(keyedBy: type)
    advance()
    return container
  }
  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    let container = try nested((any UnkeyedDecodingContainer).self).unkeyedContainer()
    advance()
    return container
  }
  mutating func superDecoder() throws -> any Decoder {
    let decoder = try nested((any Decoder).self)
    advance()
    return decoder
  }

  private func nested(_ type: Any.Type) throws -> SlotDecoder {
    SlotDecoder(text: text, entry: try next(type), path: step)
  }

  // MARK: Elements

  private var step: CodingPath { CodingPath(PlainCodingKey(position: currentIndex), after: path) }

  /// Returns the next element's entry.
  @inline(__always) private func next(_ type: Any.Type) throws -> Int {
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        type,
        .init(codingPath: CodingPath.keys(step), debugDescription: "expected another element, found the end of the array"))
    }
    return entry
  }

  @inline(__always) private mutating func advance() {
    entry = Int(text.entries[entry].next)
    currentIndex += 1
  }

  @inline(__always) private mutating func element<Value>(_ type: Value.Type, _ read: (DecodingText, Int) -> Value?) throws -> Value {
    let entry = try next(type)
    let value = try text.required(read(text, entry), type, at: entry, step)
    advance()
    return value
  }

  private mutating func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
    try element(type) { $0.integer(type, at: $1) }
  }
}
