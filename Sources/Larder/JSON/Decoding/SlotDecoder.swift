/// A decoder of one JSON value, which an entry of a scanned ``DecodingText`` describes.
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

/// A keyed decoding container over the members of one JSON object.
struct KeyedSlotDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let text: DecodingText
  let object: Int
  let path: CodingPath?

  var codingPath: [any CodingKey] { CodingPath.keys(path) }

  /// The member names of the object that are keys of the type, in the order of the JSON text.
  ///
  /// If two members have the same name, `allKeys` lists the name only once.
  var allKeys: [Key] {
    let names = text.names(of: object).map { text.text(at: $0) }
    // The names of a plain object ascend, so no two names are equal, and the set of seen names is not needed.
    guard !text.entries[object].isPlain else { return names.compactMap { Key(stringValue: $0) } }
    var seen: Set<String> = []
    return names.compactMap { seen.insert($0).inserted ? Key(stringValue: $0) : nil }
  }

  func contains(_ key: Key) -> Bool { text.member(key.stringValue, of: object) != nil }
  func decodeNil(forKey key: Key) throws -> Bool { text.isNull(at: try entry(key)) }

  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try bool(entry(key), key) }
  func decode(_ type: String.Type, forKey key: Key) throws -> String { try string(entry(key), key) }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try double(entry(key), key) }
  func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try float(entry(key), key) }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try integer(type, at: entry(key), key) }
  func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try integer(type, at: entry(key), key) }
  func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try integer(type, at: entry(key), key) }
  func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try integer(type, at: entry(key), key) }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try integer(type, at: entry(key), key) }
  func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try integer(type, at: entry(key), key) }
  func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try integer(type, at: entry(key), key) }
  func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try integer(type, at: entry(key), key) }
  func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try integer(type, at: entry(key), key) }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try integer(type, at: entry(key), key) }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try integer(type, at: entry(key), key) }
  func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try integer(type, at: entry(key), key) }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try text.value(type, at: entry(key), step(key))
  }

  // The standard library's default implementations of `decodeIfPresent` would look up each name three times.
  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try present(key).map { try bool($0, key) } }
  func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try present(key).map { try string($0, key) } }
  func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try present(key).map { try double($0, key) } }
  func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { try present(key).map { try float($0, key) } }
  func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try present(key).map { try integer(type, at: $0, key) } }
  func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try present(key).map { try integer(type, at: $0, key) } }
  func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try present(key).map { try integer(type, at: $0, key) } }
  func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try present(key).map { try integer(type, at: $0, key) } }
  func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try present(key).map { try integer(type, at: $0, key) } }
  func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try present(key).map { try integer(type, at: $0, key) } }
  func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try present(key).map { try integer(type, at: $0, key) } }
  func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try present(key).map { try integer(type, at: $0, key) } }
  func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try present(key).map { try integer(type, at: $0, key) } }
  func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try present(key).map { try integer(type, at: $0, key) } }
  func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
    guard let entry = present(key) else { return nil }
    return try text.value(type, at: entry, step(key))
  }

  // MARK: Containers

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<Nested> {
    try nested(key).container(keyedBy: type)
  }
  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { try nested(key).unkeyedContainer() }
  func superDecoder() throws -> any Decoder { outer(PlainCodingKey.super) }
  func superDecoder(forKey key: Key) throws -> any Decoder { outer(key) }

  private func nested(_ key: Key) throws -> SlotDecoder {
    SlotDecoder(text: text, entry: try entry(key), path: CodingPath(key, after: path))
  }

  /// Returns the decoder of a superclass's member, or a decoder of null if the object has no such member.
  private func outer(_ key: some CodingKey) -> any Decoder {
    let path = CodingPath(key, after: path)
    // A superclass that encodes nothing has no member in the JSON text, but decoding the superclass must still succeed, as with Foundation.
    guard let entry = text.member(key.stringValue, of: object) else { return SlotDecoder(text: .null, entry: 0, path: path) }
    return SlotDecoder(text: text, entry: entry, path: path)
  }

  // MARK: Members

  @inline(__always) private func entry(_ key: Key) throws -> Int {
    guard let entry = text.member(key.stringValue, of: object) else { throw notFound(key) }
    return entry
  }

  /// Returns the entry of a member's value, or `nil` if the member is missing or null.
  @inline(__always) private func present(_ key: Key) -> Int? {
    guard let entry = text.member(key.stringValue, of: object), !text.isNull(at: entry) else { return nil }
    return entry
  }

  private func bool(_ entry: Int, _ key: Key) throws -> Bool { try text.required(text.bool(at: entry), Bool.self, at: entry, step(key)) }
  private func string(_ entry: Int, _ key: Key) throws -> String {
    try text.required(text.string(at: entry), String.self, at: entry, step(key))
  }
  private func double(_ entry: Int, _ key: Key) throws -> Double {
    try text.required(text.double(at: entry), Double.self, at: entry, step(key))
  }
  private func float(_ entry: Int, _ key: Key) throws -> Float {
    try text.required(text.float(at: entry), Float.self, at: entry, step(key))
  }
  private func integer<Number: FixedWidthInteger>(_ type: Number.Type, at entry: Int, _ key: Key) throws -> Number {
    try text.required(text.integer(type, at: entry), type, at: entry, step(key))
  }

  private func step(_ key: Key) -> CodingPath { CodingPath(key, after: path) }

  // `notFound` is not inlined, because the code that creates the error would otherwise be repeated for each decoded property.
  @inline(never) private func notFound(_ key: Key) -> DecodingError {
    .keyNotFound(key, .init(codingPath: codingPath, debugDescription: "expected a member \(key.stringValue), found none"))
  }
}

/// An unkeyed decoding container over the elements of one JSON array.
struct UnkeyedSlotDecoder: UnkeyedDecodingContainer {
  private let text: DecodingText
  private let array: Int
  private let path: CodingPath?
  private var entry: Int
  private(set) var currentIndex = 0

  init(text: DecodingText, array: Int, path: CodingPath?) {
    (self.text, self.array, self.path) = (text, array, path)
    // The entry of an array comes directly before the entry of its first element.
    entry = array + 1
  }

  var codingPath: [any CodingKey] { CodingPath.keys(path) }
  var count: Int? { Int(text.entries[array].length) }
  var isAtEnd: Bool { currentIndex == text.entries[array].length }

  mutating func decodeNil() throws -> Bool {
    // The container moves to the next element only after a null. An element that is not null must be left for the next call, as
    // `UnkeyedDecodingContainer` demands.
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
    // The container moves to the next element only after a success, so that a caller may try another type for the same element.
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

  /// Returns the entry of the array's next element.
  ///
  /// - Throws: `DecodingError.valueNotFound` at the end of the array.
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

/// A coding path as a linked list, from the last key back to the first.
///
/// Decoding a nested value adds a key to the list without copying an array. An array of keys is created only for an error or for
/// `codingPath`.
final class CodingPath {
  private let parent: CodingPath?
  private let key: any CodingKey

  init(_ key: any CodingKey, after parent: CodingPath?) {
    self.key = key
    self.parent = parent
  }

  /// Returns the keys of a path as an array, from the outermost to the innermost.
  static func keys(_ path: CodingPath?) -> [any CodingKey] {
    var keys: [any CodingKey] = []
    var step = path
    while let present = step {
      keys.append(present.key)
      step = present.parent
    }
    return keys.reversed()
  }
}

/// A coding key that no type declares: a position in a JSON array, or `super`.
struct PlainCodingKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  static let `super` = PlainCodingKey(stringValue: "super")

  init(stringValue: String) {
    self.stringValue = stringValue
    intValue = nil
  }

  init(intValue: Int) { self.init(position: intValue) }

  init(position: Int) {
    stringValue = "Index \(position)"
    intValue = position
  }
}
