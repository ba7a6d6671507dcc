public import Foundation

/// The record that a cache stores of a key: a value, or that there is none, with the date of that answer.
///
/// Its Codable form is what is on disk; see ``CachedRepository`` for using it.
public struct CachedEntry<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Identifiable, Sendable {
  /// The answer of the source.
  public enum Content: Sendable {
    /// The value.
    case value(Value)
    /// The source has no value, for this reason.
    case absent(reason: String)
  }

  // What is of one size whatever the types are comes first: its place in memory is known without looking the types up.

  /// The value, if there is one: behind a reference, since entries are handed around more often than values are.
  let boxed: DecodedValue<Value>?
  /// The reason for which there is no value; empty where there is one.
  private let reason: String
  /// The date of the answer, by this device's clock.
  public let fetchedAt: Date
  /// The end of the fresh window; not before ``fetchedAt``.
  public let freshUntil: Date
  /// The end of the usable window; not before ``freshUntil``.
  public let usableUntil: Date
  /// The validator that came with the value, such as an ETag; `nil` if none did.
  public let validator: String?
  /// The bytes that it counts against a limit: those of the value as JSON, or 128 and the reason's when there is none.
  public let byteCount: Int
  /// The date when ``fetchedAt`` was first noticed to be in the future, because the clock was set back; else `nil`.
  public let noticedInFutureAt: Date?
  /// The key of the value.
  public let key: Key

  /// Makes an entry, for a cache that is filled from elsewhere than its source, and for tests.
  ///
  /// Save it to the ``CachedRepository/storage`` of a cache, under nothing but its key.
  /// - Parameters:
  ///   - key: Which value this is.
  ///   - content: The answer of the source.
  ///   - fetchedAt: The date of the answer.
  ///   - freshUntil: Until when it is fresh; ``fetchedAt`` if that is later.
  ///   - usableUntil: Until when it may be served; ``freshUntil`` if that is later.
  ///   - validator: What the source gave with it for asking again.
  ///   - byteCount: What it counts against a limit of bytes, from 0 to 2⁴⁰; unless given, the size of the value as
  ///     JSON, which is encoded for that, or 0 for a value that does not encode, and which no storage takes.
  public init(
    key: Key, content: Content, fetchedAt: Date, freshUntil: Date, usableUntil: Date, validator: String? = nil, byteCount: Int? = nil
  ) {
    let freshUntil = max(fetchedAt, freshUntil)
    self.init(
      key: key, content: content, fetchedAt: fetchedAt, freshUntil: freshUntil, usableUntil: max(freshUntil, usableUntil),
      validator: validator, byteCount: Self.bounded(Int64(byteCount ?? content.byteCount)), noticedInFutureAt: nil)
  }

  init(
    key: Key, content: Content, fetchedAt: Date, freshUntil: Date, usableUntil: Date, validator: String?, byteCount: Int,
    noticedInFutureAt: Date?
  ) {
    self.key = key
    (boxed, reason) = Self.parts(of: content)
    self.fetchedAt = fetchedAt
    self.freshUntil = freshUntil
    self.usableUntil = usableUntil
    self.validator = validator
    self.byteCount = byteCount
    self.noticedInFutureAt = noticedInFutureAt
  }

  /// Returns a number of bytes from 0 to 2⁴⁰, or to 2³¹ − 1 where `Int` has 32 bits.
  private static func bounded(_ byteCount: Int64) -> Int { Int(clamping: min(max(byteCount, 0), 1 << 40)) }

  private static func parts(of content: Content) -> (DecodedValue<Value>?, String) {
    switch content {
    case .value(let value): (DecodedValue(value), "")
    case .absent(let reason): (nil, reason)
    }
  }

  /// The key, so that there is one entry for each.
  public var id: Key { key }
  /// The answer of the source.
  public var content: Content {
    if let boxed { .value(boxed.copy()) } else { .absent(reason: reason) }
  }
  /// The value, if there is one.
  public var value: Value? { boxed?.copy() }
}

extension CachedEntry.Content {
  /// The bytes that the content counts against a limit.
  var byteCount: Int {
    switch self {
    case .value(let value):
      // A value that does not encode is refused by the storage, which counts the error.
      do { return try JSONCoder(depthLimit: StoreOptions.Limits.maximumDepth).encode(value).json.count } catch { return 0 }
    case .absent(let reason):
      // About what its record takes; or a limit of bytes would not bound how much of nothing is kept.
      return 128 + reason.utf8.count
    }
  }
}

extension CachedEntry: Codable {
  private enum CodingKeys: String, CodingKey {
    case key, value, absent, fetchedAt, freshUntil, usableUntil, validator, byteCount, noticedInFutureAt
  }

  /// Reads an entry of the form that ``encode(to:)`` writes.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    key = try container.decode(Key.self, forKey: .key)
    if let reason = try container.decodeIfPresent(String.self, forKey: .absent) {
      (boxed, self.reason) = (nil, reason)
    } else {
      (boxed, reason) = (DecodedValue(try container.decode(Value.self, forKey: .value)), "")
    }
    fetchedAt = try container.decode(Date.self, forKey: .fetchedAt)
    freshUntil = try container.decode(Date.self, forKey: .freshUntil)
    usableUntil = try container.decode(Date.self, forKey: .usableUntil)
    validator = try container.decodeIfPresent(String.self, forKey: .validator)
    // Bounded, so that sums of these never overflow, whatever is on disk.
    byteCount = Self.bounded(try container.decode(Int64.self, forKey: .byteCount))
    noticedInFutureAt = try container.decodeIfPresent(Date.self, forKey: .noticedInFutureAt)
  }

  /// Writes `value`, or `absent` with the reason, and the times beside it.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(key, forKey: .key)
    if let boxed {
      try container.encode(boxed.item, forKey: .value)
    } else {
      try container.encode(reason, forKey: .absent)
    }
    try container.encode(fetchedAt, forKey: .fetchedAt)
    try container.encode(freshUntil, forKey: .freshUntil)
    try container.encode(usableUntil, forKey: .usableUntil)
    try container.encodeIfPresent(validator, forKey: .validator)
    try container.encode(byteCount, forKey: .byteCount)
    try container.encodeIfPresent(noticedInFutureAt, forKey: .noticedInFutureAt)
  }
}
