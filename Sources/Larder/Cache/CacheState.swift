/// A cache's state in memory, beside the records of its repository and its flights.
///
/// Its size is bounded: by the number of records, or by a fixed limit.
struct CacheState<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// Entries that this process has looked up or stored.
  var entries: [Key: ResidentEntry<Key, Value>] = [:]
  /// Entries that the storage has refused.
  var unsaved = UnsavedEntries<Key, Value>()
  /// Order of eviction, or `nil` before a cache with limits stores an entry, and after a failure of the storage.
  var evictionIndex: EvictionIndex<Key>?
  var statistics = CacheStatistics()

  /// Forgets the entry of a key after a commit has deleted it.
  ///
  /// Newer entries stay: stored at `revision` or later, or unsaved after `serial`.
  mutating func forgetEntry(of key: Key, before revision: Revision, unsavedUpTo serial: UInt64) {
    // A later commit may have stored the key again before this runs.
    if let entry = entries[key], entry.revision < revision { entries[key] = nil }
    unsaved.remove(key, upTo: serial)
  }

  /// Forgets the entries of all keys after a commit has deleted them.
  ///
  /// Newer entries stay, as in ``forgetEntry(of:before:unsavedUpTo:)``.
  mutating func forgetEntries(before revision: Revision, unsavedUpTo serial: UInt64) {
    entries = entries.filter { $0.value.revision >= revision }
    unsaved.removeAll(upTo: serial)
  }

  /// Releases the entry that a committed one has replaced.
  mutating func releasePrevious(of key: Key, at revision: Revision) {
    // Readers see the commit now. Kept, each entry would hold all earlier entries of its key in memory.
    if let entry = entries[key], entry.revision == revision { entries[key] = ResidentEntry(entry.stored, of: entry, at: revision) }
  }

  /// Counts the evictions of a commit and forgets the evicted entries.
  mutating func countEvictions(_ victims: [EvictionIndex<Key>.Victim], upTo revision: Revision) {
    for victim in victims {
      // A victim that was stored again since has a newer revision, and stays.
      if let entry = entries[victim.key], entry.revision <= revision { entries[victim.key] = nil }
      statistics.evictions[victim.cause, default: 0] += 1
    }
  }

  /// Counts an answer from storage, and marks its entry as used.
  mutating func countAnswer(_ entry: ResidentEntry<Key, Value>, isFresh: Bool) {
    if isFresh { statistics.hits += 1 } else { statistics.staleServes += 1 }
    entry.noteAnswer()
    // The map may hold another object for the same record by now, which the next call finds.
    if let current = entries[entry.stored.key], current.version == entry.version { current.noteAnswer() }
    evictionIndex?.touch(entry.stored.key)
  }

  /// Counts a failure of the storage.
  mutating func countStorageError(_ error: RepositoryError) {
    statistics.storageErrors += 1
    statistics.lastStorageError = error.code
  }
}

/// Entries that the storage has refused, until it works again: the newest hundred, within the limits of the eviction policy.
struct UnsavedEntries<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  private struct Element: Sendable {
    let entry: ResidentEntry<Key, Value>
    let serial: UInt64
  }

  static var limit: Int { 100 }
  private var elements: [Key: Element] = [:]
  /// Number of the newest inserted entry.
  private(set) var serial: UInt64 = 0
  private(set) var byteCount = 0

  /// Number of entries.
  ///
  /// Kept beside the dictionary, because asking that looks up its type at run time, and every hit asks.
  private var count = 0

  @inline(__always) var isEmpty: Bool { count == 0 }
  subscript(key: Key) -> ResidentEntry<Key, Value>? { isEmpty ? nil : elements[key]?.entry }

  /// Inserts an entry and removes the oldest ones beyond the limits, which are also those of the storage.
  ///
  /// - Returns: The entry, with the version `.none` if it is beyond the limits by itself.
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
    // A linear search is enough: there are at most a hundred entries, and only a storage that fails inserts any.
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
