internal import Foundation
internal import Synchronization

// `value(for:)` after its fast path looks the key up, decides, and joins a flight if the decision is to fetch.

extension CachedRepository {
  /// Returns the entry for the fast path, a fresh value that was returned before, or `nil` in all other cases.
  ///
  /// Counts the answer. The result is that of ``lookup(_:)`` and ``decision(_:_:)``, with one reading of the clock and without decoding. It
  /// reads no records if nothing was published since the entry was last compared with its record.
  nonisolated func freshEntry(_ key: Key, _ policy: FetchPolicy, at uptime: Duration) -> ResidentEntry<Key, Value>? {
    switch policy {
    case .networkOnly, .networkFirst: return nil
    case .cacheFirst, .staleWhileRevalidate, .cacheOnly: break
    }
    // `nil` for a closed store, which the slow path counts as an error of the storage.
    guard let publication = storage.core.openPublication else { return nil }
    // A variable, because a generic result of the closure costs a look-up of its type at run time in every hit.
    var hit: ResidentEntry<Key, Value>?
    state.withLock { state in
      // An unsaved value of any key turns the fast path off: it is newer than the entry of its key.
      guard let entry = state.entries[key], entry.isHit(at: uptime), state.unsaved.isEmpty else { return }
      guard entry.isConfirmed(at: publication) || confirms(entry) else { return }
      state.statistics.hits += 1
      state.evictionIndex?.touch(key)
      hit = entry
    }
    return hit
  }

  /// True if an entry is of the record that readers see now.
  ///
  /// Marks the entry as compared at this publication.
  private nonisolated func confirms(_ entry: ResidentEntry<Key, Value>) -> Bool {
    let (records, publication) = storage.core.publishedRecords(of: storage.collection)
    guard let recordKey = entry.recordKey, records[recordKey]?.revision == entry.revision else { return false }
    entry.confirm(at: publication)
    return true
  }

  /// Looks a key up and acts on the decision, until there is an answer or an error.
  nonisolated(nonsending) func answer(_ key: Key, _ policy: FetchPolicy) async throws -> Cached<Value> {
    var lookup = lookup(key)
    var isCounted = false
    while true {
      switch decision(policy, lookup) {
      case .answer(let cached): return cached
      case .refuse(let error): throw error
      case .answerAndRefresh(let cached):
        refresh(key, lookup)
        return cached
      case .fetch:
        // Once for each call, however often a flight sends the call back to look again.
        if !isCounted, policy != .networkOnly, !lookup.isUsable { state.withLock { $0.statistics.misses += 1 } }
        isCounted = true
        if let cached = try await fetchOrFallBack(key, policy: policy, after: lookup) { return cached }
        lookup = self.lookup(key)
      }
    }
  }

  // MARK: Decision

  /// The next step after a lookup.
  enum Decision {
    case answer(Cached<Value>)
    case answerAndRefresh(Cached<Value>)
    case fetch
    case refuse(CacheError)
  }

  /// Decides how a call with a policy continues after its lookup, and counts an answer from storage.
  nonisolated func decision(_ policy: FetchPolicy, _ lookup: Lookup<Key, Value>) -> Decision {
    switch policy {
    case .networkOnly, .networkFirst: return .fetch
    case .cacheFirst, .staleWhileRevalidate, .cacheOnly: break
    }
    let orElse = policy == .cacheOnly ? Decision.refuse(.notCached) : .fetch
    guard let entry = lookup.entry else { return orElse }
    switch (entry.value != nil, entry.state(at: lookup.uptime)) {
    case (false, .fresh):
      state.withLock { $0.statistics.negativeHits += 1 }
      return .refuse(entry.absence)
    case (false, _), (true, .expired):
      return orElse
    case (true, .stale) where policy == .cacheFirst:
      return .fetch
    case (true, let state):
      guard let cached = countedAnswer(lookup) else { return orElse }
      return state == .stale && policy == .staleWhileRevalidate ? .answerAndRefresh(cached) : .answer(cached)
    }
  }

  /// Returns the answer of a lookup, and counts it as a use of the entry.
  private nonisolated func countedAnswer(_ lookup: Lookup<Key, Value>, _ refreshError: (any Error)? = nil) -> Cached<Value>? {
    guard let entry = lookup.entry, let cached = lookup.cached(refreshError) else { return nil }
    state.withLock { $0.countAnswer(entry, isFresh: cached.state == .fresh) }
    return cached
  }

  // MARK: Fetching

  /// Fetches a key and falls back to its stored value as the policy allows.
  ///
  /// Returns `nil` if a newer version was stored meanwhile.
  private nonisolated(nonsending) func fetchOrFallBack(
    _ key: Key, policy: FetchPolicy, after lookup: Lookup<Key, Value>
  ) async throws -> Cached<Value>? {
    // Only these two policies answer with a value that was stored meanwhile. The others fetch in any case.
    let isAutomatic = policy == .cacheFirst || policy == .staleWhileRevalidate
    if isAutomatic, let error = flights.holdOffError(of: key) { return try fallBack(key, policy: policy, error: error) }
    var timeout: Duration?
    // Without a usable value there is nothing to fall back to, so the call waits for as long as the fetch takes.
    if case .networkFirst(let limit) = policy, lookup.isUsable { timeout = limit }
    while true {
      switch await joinFlight(of: key, after: isAutomatic ? lookup : nil, timeout: timeout) {
      case .ended(.success(let entry)):
        if let cached = entry.cached(at: clock.uptime, .remote) { return cached }
        throw entry.absence
      case .ended(.failure(let error)): return try fallBack(key, policy: policy, error: error)
      case .timedOut:
        if let cached = usableAnswer(key, CacheError.timedOut(timeout ?? .zero)) { return cached }
        // The value expired during the wait: join the flight again, without a limit.
        timeout = nil
      case .cancelled: throw CancellationError()
      case .changed: return nil
      }
    }
  }

  /// Returns the usable stored value with the error of the fetch beside it, or throws that error.
  private nonisolated func fallBack(_ key: Key, policy: FetchPolicy, error: any Error) throws -> Cached<Value> {
    guard policy != .networkOnly, let cached = usableAnswer(key, error) else { throw error }
    return cached
  }

  /// Returns the stored value if it is usable now, with `error` as the reason why it is not newer.
  private nonisolated func usableAnswer(_ key: Key, _ error: any Error) -> Cached<Value>? {
    let lookup = lookup(key)
    return lookup.isUsable ? countedAnswer(lookup, error) : nil
  }

  /// Joins the flight of a key, begins one if there is none, and waits for its end.
  ///
  /// - Parameters:
  ///   - lookup: Result of the caller's lookup. If another version is stored by now, no flight begins and the outcome is `.changed`.
  ///   - timeout: Longest wait. The flight continues after it.
  nonisolated(nonsending) func joinFlight(
    of key: Key, after lookup: Lookup<Key, Value>?, timeout: Duration?
  ) async -> Flights<Key, ResidentEntry<Key, Value>>.Outcome {
    await flights.join(key, timeout: timeout, unless: { lookup.map { hasChanged(key, since: $0) } ?? false }, fetch: fetch(of: key))
  }

  /// Begins a flight in the background, or lets the key's flight continue without a caller.
  nonisolated func refresh(_ key: Key, _ lookup: Lookup<Key, Value>) {
    guard !Task.isCancelled, flights.mayRefresh(key) else { return }
    flights.begin(key, unless: { hasChanged(key, since: lookup) }, fetch: fetch(of: key))
  }

  /// Returns the work of a flight of a key: a request with the validator of the stored value, and the commit of its result.
  private nonisolated func fetch(of key: Key) -> Flights<Key, ResidentEntry<Key, Value>>.Fetch {
    { [self] flight, ticket in
      // Looked up when the flight starts, since a flight of the key may have stored a newer validator after the caller's lookup.
      try await requestAndStore(key, base: lookup(key).entry?.stored, flight: flight, ticket: ticket)
    }
  }

  /// True if a key has another version than `lookup` found.
  ///
  /// Called with the lock of the flights held.
  private nonisolated func hasChanged(_ key: Key, since lookup: Lookup<Key, Value>) -> Bool {
    // Unsaved entries first: storage refused them, so the record beside them is older.
    if let unsaved = state.withLock({ $0.unsaved[key] }) { return unsaved.version != lookup.version }
    guard let recordKey = lookup.recordKey else { return lookup.version != .none }
    do throws(RepositoryError) {
      let slot = try storage.core.records(of: storage.collection)[recordKey]
      return lookup.version != (slot.map { .stored($0.revision) } ?? .none)
    } catch {
      return lookup.version != .none  // closed: there is no entry any more
    }
  }

  // MARK: Lookup

  /// Returns the entry of a key with its version and age, without waiting and without counting a use.
  ///
  /// A record that cannot be read counts as missing, and as an error of the storage.
  nonisolated func lookup(_ key: Key) -> Lookup<Key, Value> {
    let uptime = clock.uptime
    let (entry, unsaved) = state.withLock { ($0.entries[key], $0.unsaved[key]) }
    // An unsaved entry is newer than the record, except where another process has written meanwhile.
    if let unsaved, !isSuperseded(unsaved, entry?.recordKey) { return Lookup(unsaved, at: uptime, recordKey: entry?.recordKey) }
    var recordKey = entry?.recordKey
    var version = EntryVersion.none
    do throws(RepositoryError) {
      let address = if let recordKey { recordKey } else { try storage.coder.keys.key(for: key) }
      recordKey = address
      guard let slot = try storage.core.records(of: storage.collection)[address] else {
        if let entry { forgetDeleted(entry, recordKey: address) }
        return Lookup(nil, at: uptime, recordKey: address)
      }
      version = .stored(slot.revision)
      // The entry's own record, or the record that it replaces in a commit that readers do not see yet.
      if let entry = entry?.at(slot.revision) { return Lookup(entry, at: uptime, recordKey: address) }
      let arrived = arrivedEntry(
        try slot.value(storage.coder), revision: slot.revision, recordKey: address, older: entry, uptime: uptime)
      return Lookup(arrived, at: uptime, recordKey: address)
    } catch {
      state.withLock { $0.countStorageError(error) }
      // Without the version of an unreadable record, no flight could begin: the record would count as a change since the lookup.
      return Lookup(nil, at: uptime, recordKey: recordKey, version: version)
    }
  }

  /// True if another process has stored a newer value than the unsaved one of this read-only cache.
  ///
  /// Removes the unsaved one then. A cache that can write removes an unsaved entry when it stores the next value.
  private nonisolated func isSuperseded(_ unsaved: ResidentEntry<Key, Value>, _ recordKey: RecordKey?) -> Bool {
    guard isReadOnly else { return false }
    do throws(RepositoryError) {
      let address = if let recordKey { recordKey } else { try storage.coder.keys.key(for: unsaved.stored.key) }
      guard let slot = try storage.core.records(of: storage.collection)[address] else { return false }
      guard try slot.value(storage.coder).fetchedAt > unsaved.stored.fetchedAt else { return false }
    } catch {
      return false  // an unreadable record supersedes nothing
    }
    state.withLock { $0.unsaved.remove(unsaved.stored.key) }
    return true
  }

  /// Forgets the entry of a record that another cache or process has deleted, unless the entry's own commit is not visible yet.
  private nonisolated func forgetDeleted(_ entry: ResidentEntry<Key, Value>, recordKey: RecordKey) {
    // One snapshot for both questions: of two readings the second could see a newer commit.
    let snapshot = storage.snapshot
    guard entry.revision <= snapshot.revision, snapshot.records[recordKey] == nil else { return }
    state.withLock { state in
      let key = entry.stored.key
      // Another task may have stored the key again since the snapshot.
      guard state.entries[key]?.version == entry.version else { return }
      state.entries[key] = nil
      state.evictionIndex?.remove(key)
    }
  }

  /// Returns an entry for a record that this cache did not store, with its age.
  private nonisolated func arrivedEntry(
    _ stored: CachedEntry<Key, Value>, revision: Revision, recordKey: RecordKey, older: ResidentEntry<Key, Value>?, uptime: Duration
  ) -> ResidentEntry<Key, Value> {
    let entry: ResidentEntry<Key, Value>
    if let older, older.stored.fetchedAt == stored.fetchedAt {
      // The same fetch, written again by a migration or by another process. Its measured age continues.
      entry = ResidentEntry(stored, of: older, at: revision)
    } else {
      // From an earlier run, another process or another cache. The wall clock at its arrival counts, since it may have been set after that.
      let present = arrivals.present(for: revision, at: uptime)
      entry = ResidentEntry(
        stored, version: .stored(revision), recordKey: recordKey, age: stored.age(at: present), uptime: uptime, wasAnswered: false,
        isMeasured: false)
      if !isReadOnly, stored.needsFutureNote(at: present) { storeFutureNote(of: entry, at: present) }
    }
    state.withLock { state in
      // A lookup that was overtaken must not replace the entry of a newer record.
      if let newer = state.entries[stored.key], newer.revision >= revision { return }
      state.entries[stored.key] = entry
    }
    return entry
  }

  /// Stores in the background that an entry is from the future, unless the entry was replaced.
  ///
  /// The note matters only at the next launch.
  private nonisolated func storeFutureNote(of entry: ResidentEntry<Key, Value>, at present: Date) {
    Task { [self] in
      let key = entry.stored.key
      do {
        let noted = entry.stored.noticedInFuture(at: present)
        let record = try storage.coder.encode(noted, decoding: true)
        let new = try await storage.core.write(nil) { [self] batch throws(RepositoryError) in
          // The revision is expected, so that a newer value is never overwritten by the note.
          try batch.put(record, in: storage.collection, expecting: .revision(entry.revision))
          let new = batch.revision
          state.withLock { state in
            guard let current = state.entries[key], current.version == entry.version else { return }
            state.entries[key] = ResidentEntry(noted, of: current, at: new, previous: current)
          }
          return new
        }
        state.withLock { $0.releasePrevious(of: key, at: new) }
      } catch {
        // Until the next launch, an entry without the note lives no longer than any other. The entry made above goes, because the revision
        // of the failed commit is given to the next commit, which may be of another record.
        state.withLock { state in
          if let current = state.entries[key], current.replaces(entry.version) { state.entries[key] = entry }
        }
      }
    }
  }
}
