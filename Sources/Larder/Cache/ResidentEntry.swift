internal import Foundation
internal import Synchronization

/// Version of the cache entry of a key.
///
/// A caller compares two versions to find out whether the entry of the key was replaced.
enum EntryVersion: Hashable, Sendable {
  /// The key has no entry, or an entry that was neither stored nor kept in memory.
  case none
  case stored(Revision)
  /// The entry is in memory only, because the storage failed to save it or is read-only.
  ///
  /// The associated number differs from that of every other unsaved entry of the cache.
  case unsaved(UInt64)
}

/// A cache entry together with facts that only this process has: its version, its measured age, and whether it was returned.
///
/// `ResidentEntry` is a class, so that a hit (an answer from memory) copies only one reference. The freshness state of the entry is
/// computed from its age at each call and never stored.
final class ResidentEntry<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// Value of ``stored``, or `nil` for an absence (the source's answer that the key has no value).
  ///
  /// `value` copies the reference in ``stored``, so that a hit (an answer from memory) need not read ``stored``.
  let value: DecodedValue<Value>?
  private let fetchedAt: Date
  let version: EntryVersion
  let recordKey: RecordKey?
  /// Age of the entry at the moment ``uptime`` of the monotonic clock.
  private let age: Duration
  private let uptime: Duration
  /// Time after the fetch for which the entry is fresh.
  ///
  /// `freshLifetime` is a stored property, because every computation of the freshness state reads it.
  let freshLifetime: Duration
  /// End of the fresh window by the monotonic clock.
  private let freshEnd: Duration
  /// True if this process has measured the whole age by the monotonic clock, and has taken no part of the age from the wall clock.
  let isMeasured: Bool
  /// The entry that this entry replaces, or `nil`.
  ///
  /// Lookups return the previous entry until the commit of this entry is published.
  private let previous: ResidentEntry?
  private let answered: Atomic<Bool>
  /// Number of the published store state in which the entry was last compared with its record.
  private let confirmation = Atomic<UInt64>(.max)
  /// The entry in the form that the storage holds or would hold.
  let stored: CachedEntry<Key, Value>

  init(
    _ stored: CachedEntry<Key, Value>, version: EntryVersion, recordKey: RecordKey?, age: Duration = .zero, uptime: Duration,
    wasAnswered: Bool = true, isMeasured: Bool = true, previous: ResidentEntry? = nil
  ) {
    self.stored = stored
    (value, fetchedAt) = (stored.boxed, stored.fetchedAt)
    self.version = version
    self.recordKey = recordKey
    self.age = age
    self.uptime = uptime
    freshLifetime = stored.freshLifetime
    freshEnd = uptime + (freshLifetime - age)
    self.isMeasured = isMeasured
    self.previous = previous
    answered = Atomic(wasAnswered)
  }

  /// Makes an entry for a fetched value that was stored again, with the age that `other` has measured since the fetch.
  convenience init(_ stored: CachedEntry<Key, Value>, of other: ResidentEntry, at revision: Revision, previous: ResidentEntry? = nil) {
    self.init(
      stored, version: .stored(revision), recordKey: other.recordKey, age: other.age, uptime: other.uptime, wasAnswered: other.wasAnswered,
      isMeasured: other.isMeasured, previous: previous)
  }

  /// Revision of the record, or zero for an entry that is not stored.
  var revision: Revision { if case .stored(let revision) = version { revision } else { .zero } }

  /// Returns this entry or an entry that it replaces, namely the one in the record with `revision`, or `nil` if the record has neither.
  func at(_ revision: Revision) -> ResidentEntry? { version == .stored(revision) ? self : previous?.at(revision) }

  /// True if this entry was made to replace `version` and the commit of this entry is not published yet.
  func replaces(_ version: EntryVersion) -> Bool { previous?.version == version }

  /// True if this process has fetched the entry or returned it before.
  // All atomic loads and stores in this class are relaxed. If a load does not see the newest write of another thread, one slow look-up
  // follows. A stronger memory order would slow every hit (an answer from memory).
  var wasAnswered: Bool { answered.load(ordering: .relaxed) }
  func noteAnswer() { answered.store(true, ordering: .relaxed) }

  /// Returns the age of the entry at a moment of the monotonic clock.
  func age(at uptime: Duration) -> Duration { age + (uptime - self.uptime) }

  /// Returns the freshness state of the entry at a moment of the monotonic clock.
  func state(at uptime: Duration) -> Cached<Value>.State {
    let age = age(at: uptime)
    if age < freshLifetime { return .fresh }
    return age < stored.usableLifetime ? .stale : .expired
  }

  /// Returns the time until the freshness state changes, or `nil` for an expired entry.
  func timeUntilNextState(at uptime: Duration) -> Duration? {
    switch state(at: uptime) {
    case .fresh: freshLifetime - age(at: uptime)
    case .stale: stored.usableLifetime - age(at: uptime)
    case .expired: nil
    }
  }

  /// True if the entry holds a fresh value that was returned before, so that a call may return it without decoding a record.
  func isHit(at uptime: Duration) -> Bool { uptime < freshEnd && value != nil && wasAnswered }

  /// True if the entry was compared with its record in the published state `publication`, so that the record need not be read again.
  func isConfirmed(at publication: UInt64) -> Bool { confirmation.load(ordering: .relaxed) == publication }
  func confirm(at publication: UInt64) { confirmation.store(publication, ordering: .relaxed) }

  /// Returns a copy of the value with its age, as an answer from memory.
  ///
  /// The caller of `hit` has checked with ``isHit(at:)`` that the value is fresh and was returned before.
  func hit(_ value: DecodedValue<Value>, at uptime: Duration) -> Cached<Value> {
    Cached(value: value.copy(), fetchedAt: fetchedAt, age: age(at: uptime), state: .fresh, origin: .memory)
  }

  /// Returns the value of this entry as an answer of the cache, or `nil` if the entry states that the key has no value.
  func cached(at uptime: Duration, _ origin: Cached<Value>.Origin, _ refreshError: (any Error)? = nil) -> Cached<Value>? {
    guard let value else { return nil }
    return Cached(
      value: value.copy(), fetchedAt: fetchedAt, age: age(at: uptime), state: state(at: uptime), origin: origin,
      refreshError: refreshError)
  }

  /// The error to throw if this entry states that the key has no value.
  var absence: CacheError {
    if case .absent(let reason) = stored.content { .absent(reason: reason, since: stored.fetchedAt) } else { .notCached }
  }
}

/// Result of looking up a key in a cache at one moment.
struct Lookup<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  let entry: ResidentEntry<Key, Value>?
  /// Moment of the lookup, by the monotonic clock.
  let uptime: Duration
  /// Key of the record, or `nil` for a key that cannot be stored.
  let recordKey: RecordKey?
  /// Version of the entry, or of the key's stored record if the record cannot be read.
  let version: EntryVersion
  /// Origin (memory or disk) that an answer with this entry reports.
  let origin: Cached<Value>.Origin

  init(_ entry: ResidentEntry<Key, Value>?, at uptime: Duration, recordKey: RecordKey?, version: EntryVersion = .none) {
    self.entry = entry
    self.uptime = uptime
    self.recordKey = recordKey
    self.version = entry?.version ?? version
    // The origin is computed before the answer is returned, since returning it marks the entry as returned before.
    origin = entry?.wasAnswered == true ? .memory : .disk
  }

  var state: Cached<Value>.State? { entry?.state(at: uptime) }

  /// True if the lookup has found a value that has not expired.
  var isUsable: Bool { entry?.value != nil && state != .expired }

  /// Returns the value of the entry as an answer of the cache, or `nil` if the lookup has found no value.
  func cached(_ refreshError: (any Error)? = nil) -> Cached<Value>? { entry?.cached(at: uptime, origin, refreshError) }
}
