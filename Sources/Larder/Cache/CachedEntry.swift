public import Foundation

/// The record that a cache stores for a key: a value, or the absence of a value, with the date of the source's answer.
///
/// The storage writes the `Codable` form of an entry. Entries are the records of a cache's ``CachedRepository/storage``.
public struct CachedEntry<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Identifiable, Sendable {
  /// The answer of a source for one key.
  public enum Content: Sendable {
    /// The source has returned a value for the key.
    case value(Value)
    /// The source has answered that it has no value for the key, and has given a reason.
    case absent(reason: String)
  }

  // Stored properties of a fixed size come before the generic `key`. Properties before `key` have constant offsets, so reading them looks
  // up no generic type at run time.

  /// The value in a box, or `nil` if the source has no value for the key.
  ///
  /// The value is boxed, so that copying an entry copies a reference and not the value.
  let boxed: DecodedValue<Value>?
  /// The reason why the source has no value for the key, or an empty string if the source has a value.
  private let reason: String
  /// Date of the source's answer, by the wall clock of this device.
  public let fetchedAt: Date
  /// End of the value's fresh window, which is not before ``fetchedAt``.
  public let freshUntil: Date
  /// End of the value's usable window, which is not before ``freshUntil``.
  public let usableUntil: Date
  /// Validator that the source has returned with the value, such as an ETag, or `nil`.
  public let validator: String?
  /// Size that counts for the byte limit: that of the value as JSON, or for an absence 128 bytes and the size of the reason.
  public let byteCount: Int
  /// Date when the cache first noticed that ``fetchedAt`` was in the future, because the wall clock was set back, or `nil`.
  public let noticedInFutureAt: Date?
  /// Key of the value.
  public let key: Key

  /// Makes an entry of a cache.
  ///
  /// Create an entry yourself in tests, or to fill a cache with values that do not come from its source.
  ///
  /// Save the entry to the ``CachedRepository/storage`` of a cache, where its key is the id of the record.
  /// - Parameters:
  ///   - key: Key of the value.
  ///   - content: Answer of the source.
  ///   - fetchedAt: Date of the answer.
  ///   - freshUntil: End of the fresh window. An earlier date than `fetchedAt` becomes `fetchedAt`.
  ///   - usableUntil: End of the usable window. An earlier date than `freshUntil` becomes `freshUntil`.
  ///   - validator: Validator of the value, such as an ETag, which later requests send to the source.
  ///   - byteCount: Bytes that the entry counts for the byte limit, from 0 to 2⁴⁰. By default the size of the content, for which the
  ///     value is encoded as JSON. A value that does not encode has the size 0, and saving it fails.
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

  /// Returns a number of bytes within the range from 0 to 2⁴⁰, or to 2³¹ − 1 where `Int` has 32 bits.
  private static func bounded(_ byteCount: Int64) -> Int { Int(clamping: min(max(byteCount, 0), 1 << 40)) }

  /// Splits a content into the boxed value and the reason of an absence.
  private static func parts(of content: Content) -> (DecodedValue<Value>?, String) {
    switch content {
    case .value(let value): (DecodedValue(value), "")
    case .absent(let reason): (nil, reason)
    }
  }

  /// The key as the id of the record, so that the storage holds one record for each key.
  public var id: Key { key }
  /// The answer of the source: the value, or the reason why the source has no value.
  public var content: Content {
    if let boxed { .value(boxed.copy()) } else { .absent(reason: reason) }
  }
  /// The value, or `nil` if the source has no value for the key.
  public var value: Value? { boxed?.copy() }
}

extension CachedEntry.Content {
  /// Bytes that the content counts against ``EvictionPolicy/byteLimit``.
  var byteCount: Int {
    switch self {
    case .value(let value):
      // A value that does not encode counts as 0 bytes. Writing a value that does not encode fails, and the cache counts the failure as a
      // storage error.
      do { return try JSONCoder(depthLimit: StoreOptions.Limits.maximumDepth).encode(value).json.count } catch { return 0 }
    case .absent(let reason):
      // The record of an absence (a key without a value) takes about 128 bytes. If an absence counted as 0 bytes, any number of absences
      // would fit under a byte limit.
      return 128 + reason.utf8.count
    }
  }
}

extension CachedEntry: Codable {
  private enum CodingKeys: String, CodingKey {
    case key, value, absent, fetchedAt, freshUntil, usableUntil, validator, byteCount, noticedInFutureAt
  }

  /// Decodes an entry that ``encode(to:)`` has written.
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
    // A damaged file may hold any number as the byte count of an entry. Without a bound, the sum of the sizes of all entries could
    // overflow.
    byteCount = Self.bounded(try container.decode(Int64.self, forKey: .byteCount))
    noticedInFutureAt = try container.decodeIfPresent(Date.self, forKey: .noticedInFutureAt)
  }

  /// Writes the key, the value under `value` or the reason of an absence under `absent`, the dates, the validator and the byte count.
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

// The age of a stored entry is computed from the wall clock, which a user or the network may have set back or forward.
extension CachedEntry {
  /// Length of the entry's fresh window.
  var freshLifetime: Duration { Duration(bounding: freshUntil.timeIntervalSince(fetchedAt)) }
  /// Length of the entry's usable window.
  var usableLifetime: Duration { Duration(bounding: usableUntil.timeIntervalSince(fetchedAt)) }

  /// Returns the age of the entry at the date `present` of the wall clock.
  ///
  /// A ``fetchedAt`` five seconds or more in the future shows that the wall clock was set back. As long as ``fetchedAt`` is five seconds or
  /// more in the future, the age of the entry is at least the length of the fresh window, so the entry is not fresh.
  ///
  /// While the wall clock is set back, the age of the entry grows from ``noticedInFutureAt`` on. An age that did not grow would keep the
  /// entry usable for as long as the wall clock is set back. After the wall clock is corrected, the true age of the entry counts again, but
  /// at least the length of the fresh window, because a clock that was wrong once cannot be trusted.
  func age(at present: Date) -> Duration {
    let age = Duration(bounding: present.timeIntervalSince(fetchedAt))
    // Two processes read the wall clock at different moments, so a date less than five seconds in the future does not show that the clock
    // was set back.
    if age + Self.clockTolerance > .zero, noticedInFutureAt == nil { return max(age, .zero) }
    guard age < .zero, let noticedInFutureAt else { return max(age, freshLifetime) }
    return freshLifetime + Duration(bounding: present.timeIntervalSince(noticedInFutureAt)).bounded
  }

  /// True if ``fetchedAt`` is in the future and ``noticedInFutureAt`` is missing or later than `present`.
  ///
  /// If `needsFutureNote` returns true, the cache stores the entry again with `present` as ``noticedInFutureAt``, which ``age(at:)`` uses.
  func needsFutureNote(at present: Date) -> Bool {
    guard Duration(bounding: present.timeIntervalSince(fetchedAt)) + Self.clockTolerance <= .zero else { return false }
    return noticedInFutureAt.map { $0 > present } ?? true
  }

  /// Time by which ``fetchedAt`` may be ahead of the wall clock without counting as a date in the future.
  private static var clockTolerance: Duration { .seconds(5) }

  /// Returns a copy of the entry with `present` as ``noticedInFutureAt``.
  func noticedInFuture(at present: Date) -> CachedEntry {
    CachedEntry(
      key: key, content: content, fetchedAt: fetchedAt, freshUntil: freshUntil, usableUntil: usableUntil, validator: validator,
      byteCount: byteCount, noticedInFutureAt: present)
  }
}
