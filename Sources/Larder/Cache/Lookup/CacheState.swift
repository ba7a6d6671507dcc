/// The state of a cache in memory, besides its records.
///
/// Everything in it is bounded: by the records, by the flights under way, or by a number.
struct CacheState<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// The stored entries that were looked up or stored by this process.
  var entries: [Key: CacheEntry<Key, Value>] = [:]
  /// The entries that storage refused.
  var unsaved = UnsavedEntries<Key, Value>()
  /// The flights under way, by their number.
  var flights: [UInt64: Flight<Key, Value>] = [:]
  /// The number of the flight that callers of a key join.
  var current: [Key: UInt64] = [:]
  var lastFlight: UInt64 = 0
  /// The flights of a key that were cancelled without a caller left, and that have not ended; the newest last.
  var abandoned: [Key: [UInt64]] = [:]
  /// The keys that providers have asked not to be asked for until a moment.
  var holdOffs = HoldOffs<Key>()
  /// The keys whose flight has failed, which are not refreshed in the background until a moment.
  var backOffs = HoldOffs<Key>(holdsAllWhenFull: true)
  /// The order of eviction; `nil` until it is needed, and after storage has failed.
  var evictionIndex: EvictionIndex<Key>?
  var statistics = CacheStatistics()

  /// Whether a key is to be left alone at a moment, as far as no caller waits for it.
  func isHeld(_ key: Key, _ uptime: Duration) -> Bool { holdOffs.error(key, uptime) != nil || backOffs.error(key, uptime) != nil }

  /// Forbids the flights of a key to store their results; they go on for their waiters.
  mutating func invalidateFlights(of key: Key) {
    if let id = current.removeValue(forKey: key) { flights[id]?.isInvalidated = true }
    for id in abandoned[key] ?? [] { flights[id]?.isInvalidated = true }
  }

  mutating func invalidateAllFlights() {
    for id in current.values { flights[id]?.isInvalidated = true }
    for id in abandoned.values.joined() { flights[id]?.isInvalidated = true }
    current = [:]
  }

  /// Removes the entry of a key from before a commit that has deleted it, and the one that was unsaved by then.
  mutating func forget(_ key: Key, before revision: Revision, unsavedUpTo serial: UInt64) {
    if let entry = entries[key], entry.revision < revision { entries[key] = nil }
    unsaved.remove(key, upTo: serial)
    holdOffs.remove(key)
    backOffs.remove(key)
  }

  mutating func forgetAll(before revision: Revision, unsavedUpTo serial: UInt64) {
    entries = entries.filter { $0.value.revision >= revision }
    unsaved.removeAll(upTo: serial)
    (holdOffs, backOffs) = (.init(), .init(holdsAllWhenFull: true))
  }

  /// Releases what a committed entry has replaced.
  mutating func settle(_ key: Key, _ revision: Revision) {
    if let entry = entries[key], entry.revision == revision { entries[key] = CacheEntry(entry, entry.stored, at: revision) }
  }

  /// Counts what was evicted by a commit that went through.
  mutating func count(_ victims: [EvictionIndex<Key>.Victim], upTo revision: Revision) {
    for victim in victims {
      if let entry = entries[victim.key], entry.revision <= revision { entries[victim.key] = nil }
      statistics.evictions[victim.cause, default: 0] += 1
    }
  }

  /// Counts an answer from storage, and notes that its entry was used.
  mutating func countAnswer(_ entry: CacheEntry<Key, Value>, isFresh: Bool) {
    if isFresh { statistics.hits += 1 } else { statistics.staleServes += 1 }
    entry.noteAnswer()
    // Another object may stand for the same record by now.
    if let current = entries[entry.stored.key], current.version == entry.version { current.noteAnswer() }
    evictionIndex?.touch(entry.stored.key)
  }

  /// Counts a failure of the storage.
  mutating func note(_ error: RepositoryError) {
    statistics.storageErrors += 1
    statistics.lastStorageError = error.code
  }
}
