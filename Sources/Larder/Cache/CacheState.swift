/// The state of a cache in memory: entries of stored records, unsaved entries, the eviction index and the statistics.
///
/// The state holds at most one entry for each key that this process has looked up or stored, and at most a hundred unsaved entries.
struct CacheState<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// Entries of the keys that this process has looked up or stored.
  var entries: [Key: ResidentEntry<Key, Value>] = [:]
  /// Entries that the storage has failed to save, or that a read-only cache has fetched.
  var unsaved = UnsavedEntries<Key, Value>()
  /// Stored entries in the order of their eviction, or `nil` until a write or a call of `relieve(_:)` builds the index.
  ///
  /// A failed write and `removeAll()` set `evictionIndex` to `nil`, because the index may then differ from the stored records.
  var evictionIndex: EvictionIndex<Key>?
  var statistics = CacheStatistics()

  /// Removes the entry of a key from memory after a commit has deleted its record.
  ///
  /// An entry that was stored at `revision` or later stays in memory, and an unsaved entry with a higher number than `serial` stays too.
  mutating func forgetEntry(of key: Key, before revision: Revision, unsavedUpTo serial: UInt64) {
    // Between the commit of the deletion and the call of `forgetEntry`, a later commit may have stored the key again.
    if let entry = entries[key], entry.revision < revision { entries[key] = nil }
    unsaved.remove(key, upTo: serial)
  }

  /// Removes the entries of all keys from memory after a commit has deleted their records.
  ///
  /// Entries that were stored at `revision` or later stay in memory, and so do unsaved entries with higher numbers than `serial`.
  mutating func forgetEntries(before revision: Revision, unsavedUpTo serial: UInt64) {
    entries = entries.filter { $0.value.revision >= revision }
    unsaved.removeAll(upTo: serial)
  }

  /// Drops the reference from a committed entry to the earlier entry of the key, which it has replaced.
  mutating func releasePrevious(of key: Key, at revision: Revision) {
    // The commit of the entry is published, so no lookup needs the replaced entry any more. A committed entry that kept the reference to
    // its predecessor would hold all earlier entries of its key in memory.
    if let entry = entries[key], entry.revision == revision { entries[key] = ResidentEntry(entry.stored, of: entry, at: revision) }
  }

  /// Counts the entries that a commit has evicted, and removes these entries from memory.
  mutating func countEvictions(_ victims: [EvictionIndex<Key>.Victim], upTo revision: Revision) {
    for victim in victims {
      // A later commit may have stored the key of an evicted entry again. The entry of that later commit has a higher revision and stays in
      // memory.
      if let entry = entries[victim.key], entry.revision <= revision { entries[victim.key] = nil }
      statistics.evictions[victim.cause, default: 0] += 1
    }
  }

  /// Counts an answer from storage as a hit (fresh) or a stale serve, and marks its entry as used.
  mutating func countAnswer(_ entry: ResidentEntry<Key, Value>, isFresh: Bool) {
    if isFresh { statistics.hits += 1 } else { statistics.staleServes += 1 }
    entry.noteAnswer()
    // Another lookup may have put a second entry object for the same record into `entries`. If the second object were not marked as used,
    // the next answer of the cache would name `.disk` as its origin.
    if let current = entries[entry.stored.key], current.version == entry.version { current.noteAnswer() }
    evictionIndex?.touch(entry.stored.key)
  }

  /// Counts a failed read or write of the storage, and keeps the code of its error.
  mutating func countStorageError(_ error: RepositoryError) {
    statistics.storageErrors += 1
    statistics.lastStorageError = error.code
  }
}

/// The newest entries that the storage has failed to save or that a read-only cache has fetched, at most a hundred.
///
/// The unsaved entries together also stay within the limits of the eviction policy. A successful write of a key removes the unsaved entry
/// of that key.
struct UnsavedEntries<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  private struct Element: Sendable {
    let entry: ResidentEntry<Key, Value>
    let serial: UInt64
  }

  static var limit: Int { 100 }
  private var elements: [Key: Element] = [:]
  /// Number of the newest unsaved entry, which each insertion of an entry increases by one.
  private(set) var serial: UInt64 = 0
  private(set) var byteCount = 0

  /// Number of unsaved entries.
  ///
  /// `count` is a stored property, because every hit of the cache reads it, and reading the count of the dictionary looks up its generic
  /// type at run time.
  private var count = 0

  @inline(__always) var isEmpty: Bool { count == 0 }
  subscript(key: Key) -> ResidentEntry<Key, Value>? { isEmpty ? nil : elements[key]?.entry }

  /// Inserts an unsaved entry, and removes the oldest unsaved entries until the rest fits within the limits.
  ///
  /// - Returns: The inserted entry, with the version `.none` if it exceeds the limits by itself and was not kept.
  mutating func insert(
    _ stored: CachedEntry<Key, Value>, uptime: Duration, policy: EvictionPolicy
  ) -> ResidentEntry<Key, Value> {
    remove(stored.key)
    serial += 1
    let entry = ResidentEntry(stored, version: .unsaved(serial), recordKey: nil, uptime: uptime)
    elements[stored.key] = Element(entry: entry, serial: serial)
    count += 1
    byteCount += stored.byteCount
    let (count, bytes) = (min(policy.countLimit ?? Self.limit, Self.limit), policy.byteLimit ?? .max)
    // A linear search for the oldest entry is enough, because there are at most a hundred unsaved entries.
    while elements.count > count || byteCount > bytes, let oldest = elements.min(by: { $0.value.serial < $1.value.serial }) {
      remove(oldest.key)
    }
    return elements[stored.key] == nil ? ResidentEntry(stored, version: .none, recordKey: nil, uptime: uptime) : entry
  }

  mutating func remove(_ key: Key, upTo serial: UInt64 = .max) {
    guard let element = elements[key], element.serial <= serial else { return }
    elements[key] = nil
    count -= 1
    byteCount -= element.entry.stored.byteCount
  }

  mutating func removeAll(upTo serial: UInt64) {
    for key in elements.keys { remove(key, upTo: serial) }
  }
}
