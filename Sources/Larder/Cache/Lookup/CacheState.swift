internal import Foundation

/// The clocks and the storage when a cache was made: what the entries of earlier runs are judged by.
struct CacheStart: Sendable {
  let wall: Date
  let uptime: Duration
  let revision: Revision

  /// What the wall clock would have said when the monotonic one began.
  var origin: Date { wall.addingTimeInterval(-uptime.inSeconds) }
}

/// What a cache knows beside its entries.
///
/// Everything in it is bounded by the entries, the fetches under way, or a number.
struct CacheState<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  /// The entries that this process has seen.
  var known: [Key: KnownEntry<Value>] = [:]
  /// What storage has refused to take.
  var unsaved = UnsavedEntries<Key, Value>()
  /// The fetches under way, by their number.
  var flights: [UInt64: Flight<Key, Value>] = [:]
  /// The number of the fetch that callers of a key join.
  var current: [Key: UInt64] = [:]
  var lastFlight: UInt64 = 0
  /// The fetches of a key that nobody waits for, and that have not ended although they were cancelled; the newest last.
  var abandoned: [Key: [UInt64]] = [:]
  /// Until when providers have asked not to be asked again.
  var holdOffs = HoldOffs<Key>()
  /// Until when keys whose fetch has failed are not refreshed in the background.
  var backOffs = HoldOffs<Key>(holdsAllWhenFull: true)
  /// What is evicted next; `nil` until it is needed, and after storage has failed.
  var evictionIndex: EvictionIndex<Key>?
  var statistics = CacheStatistics()
  /// Readers of `updates`, to be told of what storage does not tell.
  var readers: [Key: [ObjectIdentifier: WeakSignal]] = [:]

  /// Keeps the result of the fetch of a key out, which goes on for those who wait for it.
  mutating func doom(_ key: Key) {
    if let id = current.removeValue(forKey: key) { flights[id]?.token.doom() }
    for id in abandoned[key] ?? [] { flights[id]?.token.doom() }
  }

  mutating func doomAll() {
    for id in current.values { flights[id]?.token.doom() }
    for id in abandoned.values.joined() { flights[id]?.token.doom() }
    current = [:]
  }

  /// Removes what is known of a key from before a commit that has deleted it, and what was unsaved by then.
  mutating func forget(_ key: Key, before revision: Revision, unsavedUpTo serial: UInt64) {
    if let entry = known[key], entry.revision < revision { known[key] = nil }
    unsaved.remove(key, upTo: serial)
    holdOffs.remove(key)
    backOffs.remove(key)
  }

  mutating func forgetAll(before revision: Revision, unsavedUpTo serial: UInt64) {
    known = known.filter { $0.value.revision >= revision }
    unsaved.removeAll(upTo: serial)
    (holdOffs, backOffs) = (.init(), .init(holdsAllWhenFull: true))
  }

  /// Lets go of what a committed entry has taken the place of.
  mutating func settle(_ key: Key, _ revision: Revision) {
    if let entry = known[key], entry.revision == revision { known[key] = KnownEntry(entry, at: revision) }
  }

  /// Counts what was evicted by a commit that went through.
  mutating func count(_ victims: [EvictionIndex<Key>.Victim], upTo revision: Revision) {
    for victim in victims {
      if let entry = known[victim.key], entry.revision <= revision { known[victim.key] = nil }
      statistics.evictions[victim.cause, default: 0] += 1
    }
  }

  mutating func note(_ error: RepositoryError) {
    statistics.storageErrors += 1
    statistics.lastStorageError = error.code
  }
}

/// Which version of an entry somebody has seen, to notice that there is another.
enum EntryVersion: Hashable, Sendable {
  case none
  case stored(Revision)
  case unsaved(UInt64)
}

/// Entries that storage has refused, for as long as it does: the newest hundred, and no more than may be stored.
struct UnsavedEntries<Key: Hashable & Codable & Sendable, Value: Codable & Sendable>: Sendable {
  struct Element: Sendable {
    let entry: CachedEntry<Key, Value>
    let uptime: Duration
    let serial: UInt64
  }

  static var limit: Int { 100 }
  private var elements: [Key: Element] = [:]
  /// The number of the newest one that came.
  private(set) var serial: UInt64 = 0
  private(set) var byteCount = 0

  var isEmpty: Bool { elements.isEmpty }
  subscript(key: Key) -> Element? { elements.isEmpty ? nil : elements[key] }

  /// Keeps an entry, and lets go of the oldest beyond the limits, which are those of storage too.
  mutating func insert(_ entry: CachedEntry<Key, Value>, _ uptime: Duration, _ policy: EvictionPolicy) -> EntryVersion {
    remove(entry.key)
    serial += 1
    elements[entry.key] = Element(entry: entry, uptime: uptime, serial: serial)
    byteCount += entry.byteCount
    let (count, bytes) = (min(policy.countLimit ?? Self.limit, Self.limit), policy.byteLimit ?? .max)
    while elements.count > count || byteCount > bytes, let oldest = elements.min(by: { $0.value.serial < $1.value.serial }) {
      remove(oldest.key)
    }
    return elements[entry.key] == nil ? .none : .unsaved(serial)
  }

  mutating func remove(_ key: Key, upTo serial: UInt64 = .max) {
    guard let element = elements[key], element.serial <= serial else { return }
    elements[key] = nil
    byteCount -= element.entry.byteCount
  }

  mutating func removeAll(upTo serial: UInt64) {
    for key in elements.keys { remove(key, upTo: serial) }
  }
}

/// Keys that are not to be asked for until a moment, at most a thousand: those that are held the longest.
struct HoldOffs<Key: Hashable & Sendable>: Sendable {
  private typealias Moment = (until: Duration, error: any Error)
  static var limit: Int { 1_000 }
  private var moments: [Key: Moment] = [:]
  /// The last of the holds that there was no room for, which then holds every key.
  private var all: Moment?
  private let holdsAllWhenFull: Bool

  /// - Parameter holdsAllWhenFull: Whether a hold that there is no room for holds every key until its moment; otherwise it is forgotten.
  init(holdsAllWhenFull: Bool = false) { self.holdsAllWhenFull = holdsAllWhenFull }

  mutating func hold(_ key: Key, until: Duration, _ error: any Error, now: Duration) {
    moments[key] = (until, error)
    guard moments.count > Self.limit else { return }
    moments = moments.filter { $0.value.until > now }
    guard moments.count > Self.limit, let first = moments.min(by: { $0.value.until < $1.value.until }) else { return }
    moments[first.key] = nil
    if holdsAllWhenFull, all.map({ $0.until < first.value.until }) ?? true { all = first.value }
  }

  mutating func remove(_ key: Key) { moments[key] = nil }

  /// The error to give in the place of asking, if it is not the time yet.
  func error(_ key: Key, _ now: Duration) -> (any Error)? {
    if !moments.isEmpty, let moment = moments[key], moment.until > now { return moment.error }
    if let all, all.until > now { return all.error }
    return nil
  }
}
