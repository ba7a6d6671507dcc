internal import Foundation

/// The nesting depth of a value's encoding, found without encoding it.
///
/// An encoder calls the value, which calls the encoder, and so on: `JSONEncoder` has no limit, and a value that is nested 20,000 deep would
/// overflow the stack of its thread. So the value is first encoded into nothing, by an encoder that stops where it gets too deep.
enum EncodingDepth {
  /// Whether a value nests far deeper than the limit, so that encoding it would not be safe.
  ///
  /// Levels that leave no bracket in the text (an optional, a raw value) count too; what is near the limit is left to ``JSONSyntax`` to
  /// judge.
  ///
  /// Cost: what the value's own `encode(to:)` costs, and some hundred nanoseconds for each property.
  static func isUnsafe(_ value: some Encodable, limit: Int) -> Bool {
    let tally = Tally(limit: 2 * limit + 64)
    // Any other failure will be the real encoder's too, which has the better words for it.
    do { try value.encode(to: DepthProbe(tally: tally, level: 0)) } catch {}
    return tally.isTooDeep
  }

  /// The state that the probes of one value share.
  final class Tally {
    let limit: Int
    var isTooDeep = false

    init(limit: Int) { self.limit = limit }
  }

  struct TooDeep: Error {}
}

/// An encoder that keeps nothing, and its containers of values without keys.
private struct DepthProbe: Encoder, UnkeyedEncodingContainer, SingleValueEncodingContainer {
  let tally: EncodingDepth.Tally
  let level: Int
  private(set) var count = 0
  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(tally: EncodingDepth.Tally, level: Int) {
    self.tally = tally
    self.level = level
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    KeyedEncodingContainer(KeyedProbe<Key>(probe: self))
  }
  func unkeyedContainer() -> any UnkeyedEncodingContainer { self }
  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  /// The probe of what is one level further in.
  var inner: DepthProbe {
    if level >= tally.limit { tally.isTooDeep = true }
    return DepthProbe(tally: tally, level: level + 1)
  }

  /// Looks into a value.
  func visit<Value: Encodable>(_ value: Value) throws {
    // JSON texts without brackets, whatever these types would do by themselves.
    if Value.self == Date.self || Value.self == UUID.self || Value.self == URL.self || Value.self == Data.self || Value.self == Decimal.self
    {
      return
    }
    let inner = inner
    guard !tally.isTooDeep else { throw EncodingDepth.TooDeep() }
    try value.encode(to: inner)
  }

  mutating func encodeNil() { count += 1 }
  mutating func encode(_ value: Bool) { count += 1 }
  mutating func encode(_ value: String) { count += 1 }
  mutating func encode(_ value: Double) { count += 1 }
  mutating func encode(_ value: Float) { count += 1 }
  mutating func encode(_ value: Int) { count += 1 }
  mutating func encode(_ value: Int8) { count += 1 }
  mutating func encode(_ value: Int16) { count += 1 }
  mutating func encode(_ value: Int32) { count += 1 }
  mutating func encode(_ value: Int64) { count += 1 }
  mutating func encode(_ value: UInt) { count += 1 }
  mutating func encode(_ value: UInt8) { count += 1 }
  mutating func encode(_ value: UInt16) { count += 1 }
  mutating func encode(_ value: UInt32) { count += 1 }
  mutating func encode(_ value: UInt64) { count += 1 }

  mutating func encode<Value: Encodable>(_ value: Value) throws {
    count += 1
    try visit(value)
  }

  mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
    count += 1
    return inner.container(keyedBy: type)
  }
  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    count += 1
    return inner
  }
  mutating func superEncoder() -> any Encoder {
    count += 1
    return inner
  }
}

private struct KeyedProbe<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let probe: DepthProbe
  var codingPath: [any CodingKey] { [] }

  func encodeNil(forKey key: Key) {}
  func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try probe.visit(value) }
  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) -> KeyedEncodingContainer<Nested> {
    probe.inner.container(keyedBy: type)
  }
  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { probe.inner }
  func superEncoder() -> any Encoder { probe.inner }
  func superEncoder(forKey key: Key) -> any Encoder { probe.inner }
}
