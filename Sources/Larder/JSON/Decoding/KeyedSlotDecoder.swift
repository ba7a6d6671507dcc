/// The members of an object that is being decoded.
struct KeyedSlotDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let text: DecodingText
  let object: Int
  let path: CodingPath?

  var codingPath: [any CodingKey] { CodingPath.keys(path) }

  /// The keys of the type that there are members for, in the order of the text; of members with one name the first counts.
  var allKeys: [Key] {
    let names = text.names(of: object).map { text.text(at: $0) }
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
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try integer(type, entry(key), key) }
  func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try integer(type, entry(key), key) }
  func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try integer(type, entry(key), key) }
  func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try integer(type, entry(key), key) }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try integer(type, entry(key), key) }
  func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try integer(type, entry(key), key) }
  func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try integer(type, entry(key), key) }
  func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try integer(type, entry(key), key) }
  func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try integer(type, entry(key), key) }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try integer(type, entry(key), key) }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try integer(type, entry(key), key) }
  func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try integer(type, entry(key), key) }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try text.value(type, at: entry(key), step(key))
  }

  // Not left to the defaults, which look each name up three times.
  func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try present(key).map { try bool($0, key) } }
  func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try present(key).map { try string($0, key) } }
  func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try present(key).map { try double($0, key) } }
  func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { try present(key).map { try float($0, key) } }
  func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try present(key).map { try integer(type, $0, key) } }
  func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try present(key).map { try integer(type, $0, key) } }
  func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try present(key).map { try integer(type, $0, key) } }
  func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try present(key).map { try integer(type, $0, key) } }
  func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try present(key).map { try integer(type, $0, key) } }
  func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try present(key).map { try integer(type, $0, key) } }
  func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try present(key).map { try integer(type, $0, key) } }
  func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try present(key).map { try integer(type, $0, key) } }
  func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try present(key).map { try integer(type, $0, key) } }
  func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try present(key).map { try integer(type, $0, key) } }
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

  /// Returns the decoder of a superclass; one that finds null where there is nothing.
  private func outer(_ key: some CodingKey) -> any Decoder {
    let path = CodingPath(key, after: path)
    guard let entry = text.member(key.stringValue, of: object) else { return SlotDecoder(text: .null, entry: 0, path: path) }
    return SlotDecoder(text: text, entry: entry, path: path)
  }

  // MARK: Members

  @inline(__always) private func entry(_ key: Key) throws -> Int {
    guard let entry = text.member(key.stringValue, of: object) else { throw notFound(key) }
    return entry
  }

  /// Returns the entry of a member that is there and not null.
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
  private func integer<Number: FixedWidthInteger>(_ type: Number.Type, _ entry: Int, _ key: Key) throws -> Number {
    try text.required(text.integer(type, at: entry), type, at: entry, step(key))
  }

  private func step(_ key: Key) -> CodingPath { CodingPath(key, after: path) }

  @inline(never) private func notFound(_ key: Key) -> DecodingError {
    .keyNotFound(key, .init(codingPath: codingPath, debugDescription: "expected a member \(key.stringValue), found none"))
  }
}
