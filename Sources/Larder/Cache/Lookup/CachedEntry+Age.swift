internal import Foundation

/// An entry as it is found at one moment.
struct FoundEntry<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  let entry: CachedEntry<Key, Value>
  let version: EntryVersion
  let age: Duration
  let origin: Cached<Value>.Origin

  /// Which window the entry is in at its age.
  var state: Cached<Value>.State {
    if age < entry.freshLifetime { return .fresh }
    return age < entry.usableLifetime ? .stale : .expired
  }

  /// Whether there is a value that may be served.
  var isUsable: Bool { entry.value != nil && state != .expired }

  /// The answer, if there is a value.
  func cached(_ refreshError: (any Error)? = nil) -> Cached<Value>? {
    guard let value = entry.value else { return nil }
    return Cached(
      value: value, fetchedAt: entry.fetchedAt, age: age, state: state, origin: origin, refreshError: refreshError)
  }
}

extension CachedEntry {
  var freshLifetime: Duration { Duration(bounding: freshUntil.timeIntervalSince(fetchedAt)) }
  var usableLifetime: Duration { Duration(bounding: usableUntil.timeIntervalSince(fetchedAt)) }

  /// Returns how old the entry is at a moment of the wall clock; an entry from the future is as old as the end of its fresh window.
  ///
  /// From when that was noticed it ages on, or it would live for as long as the clock was set back. If the clock is set right again, its true
  /// age counts, but fresh it is no more: somebody has been changing the clock.
  func age(at present: Date) -> Duration {
    let age = Duration(bounding: present.timeIntervalSince(fetchedAt))
    // Two processes read the clock a moment apart.
    if age + Self.clockTolerance > .zero, noticedInFutureAt == nil { return max(age, .zero) }
    guard age < .zero, let noticedInFutureAt else { return max(age, freshLifetime) }
    return freshLifetime + Duration(bounding: present.timeIntervalSince(noticedInFutureAt)).bounded
  }

  /// Whether storage should be told that the entry is from the future; see ``age(at:)``.
  func needsFutureNote(at present: Date) -> Bool {
    guard Duration(bounding: present.timeIntervalSince(fetchedAt)) + Self.clockTolerance <= .zero else { return false }
    return noticedInFutureAt.map { $0 > present } ?? true
  }

  private static var clockTolerance: Duration { .seconds(5) }

  /// The same entry, with the note that it is from the future.
  func noticedInFuture(at present: Date) -> CachedEntry {
    CachedEntry(
      key: key, content: content, fetchedAt: fetchedAt, freshUntil: freshUntil, usableUntil: usableUntil, validator: validator,
      byteCount: byteCount, noticedInFutureAt: present)
  }
}
