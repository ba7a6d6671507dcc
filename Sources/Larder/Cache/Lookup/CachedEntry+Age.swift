internal import Foundation

extension CachedEntry {
  var freshLifetime: Duration { Duration(bounding: freshUntil.timeIntervalSince(fetchedAt)) }
  var usableLifetime: Duration { Duration(bounding: usableUntil.timeIntervalSince(fetchedAt)) }

  /// Returns the age at a moment of the wall clock; that of an entry from the future is the end of its fresh window.
  ///
  /// From when that was noticed it ages on, or it would live for as long as the clock was set back. If the clock is set
  /// right again, its true age counts, but it is not fresh any more: the clock cannot be trusted.
  func age(at present: Date) -> Duration {
    let age = Duration(bounding: present.timeIntervalSince(fetchedAt))
    // Two processes read the clock a moment apart.
    if age + Self.clockTolerance > .zero, noticedInFutureAt == nil { return max(age, .zero) }
    guard age < .zero, let noticedInFutureAt else { return max(age, freshLifetime) }
    return freshLifetime + Duration(bounding: present.timeIntervalSince(noticedInFutureAt)).bounded
  }

  /// Returns whether storage should be told that the entry is from the future; see ``age(at:)``.
  func needsFutureNote(at present: Date) -> Bool {
    guard Duration(bounding: present.timeIntervalSince(fetchedAt)) + Self.clockTolerance <= .zero else { return false }
    return noticedInFutureAt.map { $0 > present } ?? true
  }

  private static var clockTolerance: Duration { .seconds(5) }

  /// Returns the entry with the note that it is from the future.
  func noticedInFuture(at present: Date) -> CachedEntry {
    CachedEntry(
      key: key, content: content, fetchedAt: fetchedAt, freshUntil: freshUntil, usableUntil: usableUntil, validator: validator,
      byteCount: byteCount, noticedInFutureAt: present)
  }
}
