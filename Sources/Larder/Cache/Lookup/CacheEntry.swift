internal import Foundation
internal import Synchronization

/// What this process knows of a stored entry, ready to be answered with: an object, so that handing it on costs a reference.
final class KnownEntry<Value: Sendable>: Sendable {
  let recordKey: RecordKey
  /// Which record this is about.
  let revision: Revision
  /// How old the entry was at ``uptime``.
  let age: Duration
  let uptime: Duration
  /// The stored value, as it was decoded; `nil` where the entry says that there is none.
  let value: Value?
  let fetchedAt: Date
  let freshLifetime: Duration
  /// Whether all of its age was counted by the monotonic clock of this process, and none of it by the wall clock.
  let isMeasured: Bool
  /// What is known of the record that this one takes the place of, until its commit is over: until then that one is what is there.
  private let previous: KnownEntry?
  private let answered: Atomic<Bool>

  init<Key>(
    _ entry: CachedEntry<Key, Value>, _ recordKey: RecordKey, _ revision: Revision, age: Duration, uptime: Duration, wasAnswered: Bool,
    isMeasured: Bool, previous: KnownEntry? = nil
  ) {
    self.recordKey = recordKey
    self.revision = revision
    self.age = age
    self.uptime = uptime
    value = entry.value
    fetchedAt = entry.fetchedAt
    freshLifetime = entry.freshLifetime
    self.isMeasured = isMeasured
    self.previous = previous
    answered = Atomic(wasAnswered)
  }

  /// The same under another revision.
  init(_ other: KnownEntry, at revision: Revision, previous: KnownEntry? = nil) {
    recordKey = other.recordKey
    self.revision = revision
    age = other.age
    uptime = other.uptime
    value = other.value
    fetchedAt = other.fetchedAt
    freshLifetime = other.freshLifetime
    isMeasured = other.isMeasured
    self.previous = previous
    answered = Atomic(other.wasAnswered)
  }

  /// Returns what is known of the record of a revision: this one, or one whose place is being taken.
  func at(_ revision: Revision) -> KnownEntry? { revision == self.revision ? self : previous?.at(revision) }

  /// Whether this process has fetched it or answered with it.
  var wasAnswered: Bool { answered.load(ordering: .relaxed) }
  func noteAnswer() { answered.store(true, ordering: .relaxed) }

  /// Returns how old the entry is at a moment of the monotonic clock.
  func age(at uptime: Duration) -> Duration { age + (uptime - self.uptime) }
}

extension CachedRepository {
  /// The short way to a fresh value that was answered with before: what most calls want, and what must be cheap.
  ///
  /// It says what the long way would, or nothing.
  nonisolated func hit(_ key: Key, _ policy: FetchPolicy) -> Cached<Value>? {
    switch policy {
    case .networkOnly, .networkFirst: return nil
    case .cacheFirst, .staleWhileRevalidate, .cacheOnly: break
    }
    let uptime = clock.uptime
    let records: RecordMap
    do throws(RepositoryError) { records = try storage.queue.records(of: storage.collection) } catch { return nil }
    let known: KnownEntry<Value>? = state.withLock { state in
      guard let known = state.known[key], known.age(at: uptime) < known.freshLifetime, known.wasAnswered, known.value != nil else {
        return nil
      }
      guard records[known.recordKey]?.revision == known.revision, state.unsaved.isEmpty else { return nil }
      state.statistics.hits += 1
      state.evictionIndex?.touch(key)
      return known
    }
    guard let known, let value = known.value else { return nil }
    return Cached(value: value, fetchedAt: known.fetchedAt, age: known.age(at: uptime), state: .fresh, origin: .memory)
  }
}
