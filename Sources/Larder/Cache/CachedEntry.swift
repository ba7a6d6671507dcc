public import Foundation

/// The record that a cache stores for a key: a value, or the absence of one, with the date of that answer.
///
/// Its `Codable` form is the stored one. You meet it as the element of a cache's ``CachedRepository/storage``.
public struct CachedEntry<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Identifiable, Sendable {
  /// Answer of the source.
  public enum Content: Sendable {
    /// The value.
    case value(Value)
    /// The source has no value, for this reason.
    case absent(reason: String)
  }

  // Members of a fixed size come first, so that their place in memory is known without looking up the generic types at run time.

  /// The value, if there is one.
  ///
  /// Boxed, so that passing an entry around does not copy the value.
  let boxed: DecodedValue<Value>?
  /// Reason of an absence, which is empty for a value.
  private let reason: String
  /// Date of the answer, by this device's clock.
  public let fetchedAt: Date
  /// End of the fresh window, not before ``fetchedAt``.
  public let freshUntil: Date
  /// End of the usable window, not before ``freshUntil``.
  public let usableUntil: Date
  /// Validator that came with the value, such as an ETag, or `nil`.
  public let validator: String?
  /// Bytes that the entry counts against a limit: the size of the value as JSON, or for an absence 128 and the size of the reason.
  public let byteCount: Int
  /// Date when ``fetchedAt`` was first noticed to be in the future, because the clock was set back, or `nil`.
  public let noticedInFutureAt: Date?
  /// Key of the value.
  public let key: Key

  /// Makes an entry.
  ///
  /// Use it in tests, and to fill a cache from elsewhere than its source.
  ///
  /// Save it to the ``CachedRepository/storage`` of a cache. The record's id is the key.
  /// - Parameters:
  ///   - key: Key of the value.
  ///   - content: Answer of the source.
  ///   - fetchedAt: Date of the answer.
  ///   - freshUntil: End of the fresh window. An earlier date than `fetchedAt` becomes `fetchedAt`.
  ///   - usableUntil: End of the usable window. An earlier date than `freshUntil` becomes `freshUntil`.
  ///   - validator: Validator of the value for later requests, such as an ETag.
  ///   - byteCount: Bytes that the entry counts against a limit, from 0 to 2⁴⁰. By default the size of the content, for which the value
  ///     is encoded as JSON. It is 0 for a value that does not encode, which no storage takes.
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

  /// The key, so that a key has one record.
  public var id: Key { key }
  /// Answer of the source.
  public var content: Content {
    if let boxed { .value(boxed.copy()) } else { .absent(reason: reason) }
  }
  /// The value, or `nil` for an absence.
  public var value: Value? { boxed?.copy() }
}

extension CachedEntry.Content {
  /// Bytes that the content counts against a limit.
  var byteCount: Int {
    switch self {
    case .value(let value):
      // The storage refuses a value that does not encode, and counts the error.
      do { return try JSONCoder(depthLimit: StoreOptions.Limits.maximumDepth).encode(value).json.count } catch { return 0 }
    case .absent(let reason):
      // About the size of its record. Counted as nothing, any number of absences would fit under a limit of bytes.
      return 128 + reason.utf8.count
    }
  }
}

extension CachedEntry: Codable {
  private enum CodingKeys: String, CodingKey {
    case key, value, absent, fetchedAt, freshUntil, usableUntil, validator, byteCount, noticedInFutureAt
  }

  /// Reads an entry in the form that ``encode(to:)`` writes.
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
    // A damaged number must not overflow the sum of all entries.
    byteCount = Self.bounded(try container.decode(Int64.self, forKey: .byteCount))
    noticedInFutureAt = try container.decodeIfPresent(Date.self, forKey: .noticedInFutureAt)
  }

  /// Writes `value`, or `absent` with the reason, and beside it the dates, the validator and the number of bytes.
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

// Ages of entries by the wall clock, which may have been set.
extension CachedEntry {
  /// Length of the fresh window.
  var freshLifetime: Duration { Duration(bounding: freshUntil.timeIntervalSince(fetchedAt)) }
  /// Length of the usable window.
  var usableLifetime: Duration { Duration(bounding: usableUntil.timeIntervalSince(fetchedAt)) }

  /// Returns the age at a moment of the wall clock.
  ///
  /// An entry from the future is as old as its fresh window is long.
  ///
  /// It grows older from the moment when this was noticed. Otherwise it would live for as long as the clock was set back. If the clock is
  /// corrected, the true age counts, but the entry is not fresh again, because the clock cannot be trusted.
  func age(at present: Date) -> Duration {
    let age = Duration(bounding: present.timeIntervalSince(fetchedAt))
    // Two processes do not read the clock at the same moment, so a small lead is no sign of a clock that was set.
    if age + Self.clockTolerance > .zero, noticedInFutureAt == nil { return max(age, .zero) }
    guard age < .zero, let noticedInFutureAt else { return max(age, freshLifetime) }
    return freshLifetime + Duration(bounding: present.timeIntervalSince(noticedInFutureAt)).bounded
  }

  /// True if the entry is from the future and its record does not say so yet, or says so with a later date.
  ///
  /// See ``age(at:)``.
  func needsFutureNote(at present: Date) -> Bool {
    guard Duration(bounding: present.timeIntervalSince(fetchedAt)) + Self.clockTolerance <= .zero else { return false }
    return noticedInFutureAt.map { $0 > present } ?? true
  }

  /// Lead over the wall clock that does not yet count as the future.
  private static var clockTolerance: Duration { .seconds(5) }

  /// Returns the entry with the note that it is from the future.
  func noticedInFuture(at present: Date) -> CachedEntry {
    CachedEntry(
      key: key, content: content, fetchedAt: fetchedAt, freshUntil: freshUntil, usableUntil: usableUntil, validator: validator,
      byteCount: byteCount, noticedInFutureAt: present)
  }
}
