internal import Foundation
internal import Synchronization

/// The version of an entry; a caller that has looked at one notices by it that there is another.
enum EntryVersion: Hashable, Sendable {
  /// Nothing is there, or what is there was neither stored nor kept.
  case none
  case stored(Revision)
  /// In memory only, because storage refused it; the number tells it from others of the key.
  case unsaved(UInt64)
}

/// An entry with what this process knows of it: its version, its age by the monotonic clock, and whether it was answered with.
///
/// An object, so that the lookup of a hit costs a reference. The state is never kept: it follows from the age at a moment.
final class CacheEntry<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// The value of ``stored``: a hit is made of this and of the times here, without a look at the rest.
  let value: DecodedValue<Value>?
  private let fetchedAt: Date
  let version: EntryVersion
  let recordKey: RecordKey?
  /// The age at ``uptime``.
  private let age: Duration
  private let uptime: Duration
  /// The time for which the entry is fresh, from its fetch; computed once, since each hit asks for it.
  let freshLifetime: Duration
  /// The moment from which it is not fresh any more, by the monotonic clock.
  private let freshEnd: Duration
  /// Whether all of its age was counted by the monotonic clock of this process, and none of it by the wall clock.
  let isMeasured: Bool
  /// The entry that this one replaces, until its commit is over: until then that one is what readers see.
  private let previous: CacheEntry?
  private let answered: Atomic<Bool>
  /// The publication of the store at which the record was last seen to be this entry's.
  private let confirmation = Atomic<UInt64>(.max)
  /// The entry as it is stored, or would be.
  let stored: CachedEntry<Key, Value>

  init(
    _ stored: CachedEntry<Key, Value>, _ version: EntryVersion, _ recordKey: RecordKey?, age: Duration = .zero, uptime: Duration,
    wasAnswered: Bool = true, isMeasured: Bool = true, previous: CacheEntry? = nil
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

  /// Makes an entry of the same fetch, stored again.
  convenience init(_ other: CacheEntry, _ stored: CachedEntry<Key, Value>, at revision: Revision, previous: CacheEntry? = nil) {
    self.init(
      stored, .stored(revision), other.recordKey, age: other.age, uptime: other.uptime, wasAnswered: other.wasAnswered,
      isMeasured: other.isMeasured, previous: previous)
  }

  /// The revision of the record; zero for an entry that is not stored.
  var revision: Revision { if case .stored(let revision) = version { revision } else { .zero } }

  /// Returns the entry of the record with a revision: this one, or one that it replaces.
  func at(_ revision: Revision) -> CacheEntry? { version == .stored(revision) ? self : previous?.at(revision) }

  /// Whether it was made to replace a version, and keeps that until its own commit is visible.
  func replaces(_ version: EntryVersion) -> Bool { previous?.version == version }

  /// Whether this process has fetched the entry or answered with it.
  var wasAnswered: Bool { answered.load(ordering: .relaxed) }
  func noteAnswer() { answered.store(true, ordering: .relaxed) }

  /// Returns the age at a moment of the monotonic clock.
  func age(at uptime: Duration) -> Duration { age + (uptime - self.uptime) }

  /// Returns the window that the entry is in at a moment of the monotonic clock.
  func state(at uptime: Duration) -> Cached<Value>.State {
    let age = age(at: uptime)
    if age < freshLifetime { return .fresh }
    return age < stored.usableLifetime ? .stale : .expired
  }

  /// Returns how long it is until the entry is in another state; `nil` in the last one.
  func timeUntilNextState(at uptime: Duration) -> Duration? {
    switch state(at: uptime) {
    case .fresh: freshLifetime - age(at: uptime)
    case .stale: stored.usableLifetime - age(at: uptime)
    case .expired: nil
    }
  }

  /// Whether it is a fresh value that was answered with before.
  func isHit(at uptime: Duration) -> Bool { uptime < freshEnd && value != nil && wasAnswered }

  /// Whether the record was seen to be this entry's at a publication of the store.
  func isConfirmed(at publication: UInt64) -> Bool { confirmation.load(ordering: .relaxed) == publication }
  func confirm(at publication: UInt64) { confirmation.store(publication, ordering: .relaxed) }

  /// Returns the answer with the entry's value, which is fresh and was answered with before.
  func hit(_ value: DecodedValue<Value>, at uptime: Duration) -> Cached<Value> {
    Cached(value: value.copy(), fetchedAt: fetchedAt, age: age(at: uptime), state: .fresh, origin: .memory)
  }

  /// Returns the answer with this entry, or `nil` if it says that there is no value.
  func cached(at uptime: Duration, _ origin: Cached<Value>.Origin, _ refreshError: (any Error)? = nil) -> Cached<Value>? {
    guard let value else { return nil }
    return Cached(
      value: value.copy(), fetchedAt: fetchedAt, age: age(at: uptime), state: state(at: uptime), origin: origin,
      refreshError: refreshError)
  }

  /// The error for an entry that says that there is no value.
  var absence: CacheError {
    if case .absent(let reason) = stored.content { .absent(reason: reason, since: stored.fetchedAt) } else { .notCached }
  }
}

/// The result of looking a key up at one moment.
struct Lookup<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  let entry: CacheEntry<Key, Value>?
  /// The moment, by the monotonic clock.
  let uptime: Duration
  /// The key of the record; `nil` for a key that cannot be stored.
  let recordKey: RecordKey?
  /// The version of the entry, or of a record that is there and cannot be read.
  let version: EntryVersion
  /// The origin of an answer with the entry.
  let origin: Cached<Value>.Origin

  init(_ entry: CacheEntry<Key, Value>?, at uptime: Duration, _ recordKey: RecordKey?, _ version: EntryVersion = .none) {
    self.entry = entry
    self.uptime = uptime
    self.recordKey = recordKey
    self.version = entry?.version ?? version
    origin = entry?.wasAnswered == true ? .memory : .disk
  }

  var state: Cached<Value>.State? { entry?.state(at: uptime) }

  /// Whether there is a value that may be served.
  var isUsable: Bool { entry?.value != nil && state != .expired }

  /// Returns the answer with what was found, or `nil` if there is no value.
  func cached(_ refreshError: (any Error)? = nil) -> Cached<Value>? { entry?.cached(at: uptime, origin, refreshError) }
}
