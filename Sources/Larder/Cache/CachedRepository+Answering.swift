internal import Foundation
internal import Synchronization

// The slow path of `value(for:)` looks the key up and decides by the fetch policy. If the decision is to fetch, the call joins a flight,
// the running fetch that all callers of the key share.

extension CachedRepository {
  /// Returns the entry of a key if it holds a fresh value that was returned before, or `nil`, so that the call takes the slow path.
  ///
  /// A returned entry is counted as a hit. The result equals that of ``lookup(_:)`` and ``decision(_:_:)``, but is found without decoding a
  /// record. The published records are read only if the store has published a commit since the entry was last compared with its record.
  nonisolated func freshEntry(_ key: Key, _ policy: FetchPolicy, at uptime: Duration) -> ResidentEntry<Key, Value>? {
    switch policy {
    case .networkOnly, .networkFirst: return nil
    case .cacheFirst, .staleWhileRevalidate, .cacheOnly: break
    }
    // The publication is `nil` for a closed store. For a closed store, the slow path counts an error of the storage.
    guard let publication = storage.core.openPublication else { return nil }
    // The closure assigns a variable, because a generic result would cost a look-up of its type at run time in every hit.
    var hit: ResidentEntry<Key, Value>?
    state.withLock { state in
      // An unsaved value is newer than the stored entry of its key. While any key has an unsaved value, calls take the slow path, which
      // reads the unsaved values first.
      guard let entry = state.entries[key], entry.isHit(at: uptime), state.unsaved.isEmpty else { return }
      guard entry.isConfirmed(at: publication) || confirms(entry) else { return }
      state.statistics.hits += 1
      state.evictionIndex?.touch(key)
      hit = entry
    }
    return hit
  }

  /// True if an entry belongs to the published record of its key.
  ///
  /// For such an entry, the function keeps the number of the publication in the entry, so that the next call does not compare the entry
  /// with the record again.
  private nonisolated func confirms(_ entry: ResidentEntry<Key, Value>) -> Bool {
    let (records, publication) = storage.core.publishedRecords(of: storage.collection)
    guard let recordKey = entry.recordKey, records[recordKey]?.revision == entry.revision else { return false }
    entry.confirm(at: publication)
    return true
  }

  /// Looks a key up and acts on the decision of the fetch policy, until there is an answer or an error.
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
        // A call counts at most one miss, although the outcome `.changed` of a flight makes it look the key up again.
        if !isCounted, policy != .networkOnly, !lookup.isUsable { state.withLock { $0.statistics.misses += 1 } }
        isCounted = true
        if let cached = try await fetchOrFallBack(key, policy: policy, after: lookup) { return cached }
        lookup = self.lookup(key)
      }
    }
  }

  // MARK: Decision

  /// The next step of a call after its lookup.
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

  /// Returns the answer of a lookup, and counts it as a hit or a stale serve and as a use of the entry.
  private nonisolated func countedAnswer(_ lookup: Lookup<Key, Value>, _ refreshError: (any Error)? = nil) -> Cached<Value>? {
    guard let entry = lookup.entry, let cached = lookup.cached(refreshError) else { return nil }
    state.withLock { $0.countAnswer(entry, isFresh: cached.state == .fresh) }
    return cached
  }

  // MARK: Fetching

  /// Fetches a key and falls back to its stored value as the policy allows.
  ///
  /// Returns `nil` if the caller must look the key up again, because the stored entry has changed or a cancelled flight has no result.
  private nonisolated(nonsending) func fetchOrFallBack(
    _ key: Key, policy: FetchPolicy, after lookup: Lookup<Key, Value>
  ) async throws -> Cached<Value>? {
    // `.cacheFirst` and `.staleWhileRevalidate` return a value that another call stored after the lookup. The other policies fetch in any
    // case.
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
        // The stored value expired during the wait, so the call can no longer fall back to it and joins the flight without a timeout.
        timeout = nil
      case .cancelled: throw CancellationError()
      case .changed: return nil
      }
    }
  }

  /// Returns the usable stored value with `error` as its ``Cached/refreshError``, or throws `error`.
  private nonisolated func fallBack(_ key: Key, policy: FetchPolicy, error: any Error) throws -> Cached<Value> {
    guard policy != .networkOnly, let cached = usableAnswer(key, error) else { throw error }
    return cached
  }

  /// Returns the stored value with `error` as its ``Cached/refreshError`` if the value has not expired, or `nil`.
  private nonisolated func usableAnswer(_ key: Key, _ error: any Error) -> Cached<Value>? {
    let lookup = lookup(key)
    return lookup.isUsable ? countedAnswer(lookup, error) : nil
  }

  /// Joins the flight (the shared fetch) of a key, begins a flight if there is none, and waits for its end.
  ///
  /// - Parameters:
  ///   - lookup: Result of the caller's lookup. If another version is stored by now, no flight begins and the outcome is `.changed`.
  ///   - timeout: Longest wait of this caller. The flight continues after the timeout.
  nonisolated(nonsending) func joinFlight(
    of key: Key, after lookup: Lookup<Key, Value>?, timeout: Duration?
  ) async -> Flights<Key, ResidentEntry<Key, Value>>.Outcome {
    await flights.join(key, timeout: timeout, unless: { lookup.map { hasChanged(key, since: $0) } ?? false }, fetch: fetch(of: key))
  }

  /// Begins a fetch of a key in the background, or lets the running flight of the key continue after its last caller has left.
  nonisolated func refresh(_ key: Key, _ lookup: Lookup<Key, Value>) {
    guard !Task.isCancelled, flights.mayRefresh(key) else { return }
    flights.begin(key, unless: { hasChanged(key, since: lookup) }, fetch: fetch(of: key))
  }

  /// Returns the work of a flight of a key: a request with the validator of the stored value, and the commit of its result.
  private nonisolated func fetch(of key: Key) -> Flights<Key, ResidentEntry<Key, Value>>.Fetch {
    { [self] flight, ticket in
      // The entry is looked up again when the flight starts, because another flight may have stored a newer validator after the caller's
      // lookup.
      try await requestAndStore(key, base: lookup(key).entry?.stored, flight: flight, ticket: ticket)
    }
  }

  /// True if the stored or unsaved entry of a key has changed since `lookup`.
  ///
  /// ``Flights`` calls this function with its lock held.
  private nonisolated func hasChanged(_ key: Key, since lookup: Lookup<Key, Value>) -> Bool {
    // An unsaved entry is compared first. The storage failed to save it, so the stored record of the key is older.
    if let unsaved = state.withLock({ $0.unsaved[key] }) { return unsaved.version != lookup.version }
    guard let recordKey = lookup.recordKey else { return lookup.version != .none }
    do throws(RepositoryError) {
      let slot = try storage.core.records(of: storage.collection)[recordKey]
      return lookup.version != (slot.map { .stored($0.revision) } ?? .none)
    } catch {
      return lookup.version != .none  // the store is closed, so the key has no entry
    }
  }

  // MARK: Lookup

  /// Returns the entry of a key with its version and age, without waiting and without counting a use.
  ///
  /// A record that cannot be read counts as missing, and as an error of the storage.
  nonisolated func lookup(_ key: Key) -> Lookup<Key, Value> {
    let uptime = clock.uptime
    let (entry, unsaved) = state.withLock { ($0.entries[key], $0.unsaved[key]) }
    // An unsaved entry is newer than the stored record of its key, unless another process has stored a newer value.
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
      // `at` returns `entry` if `slot` holds the record of `entry`. While the commit of `entry` is not published, `at` returns the earlier
      // entry that `entry` replaces.
      if let entry = entry?.at(slot.revision) { return Lookup(entry, at: uptime, recordKey: address) }
      let arrived = arrivedEntry(
        try slot.value(storage.coder), revision: slot.revision, recordKey: address, older: entry, uptime: uptime)
      return Lookup(arrived, at: uptime, recordKey: address)
    } catch {
      state.withLock { $0.countStorageError(error) }
      // The result has the version of a record that cannot be read. Without it, `hasChanged` would take the record for a new one, and no
      // flight could begin.
      return Lookup(nil, at: uptime, recordKey: recordKey, version: version)
    }
  }

  /// True if another process has stored a newer value than the unsaved one of this read-only cache.
  ///
  /// The function removes an unsaved value that is older than the stored one. A cache that can write removes an unsaved value when it
  /// stores the next value of the key.
  private nonisolated func isSuperseded(_ unsaved: ResidentEntry<Key, Value>, _ recordKey: RecordKey?) -> Bool {
    guard isReadOnly else { return false }
    do throws(RepositoryError) {
      let address = if let recordKey { recordKey } else { try storage.coder.keys.key(for: unsaved.stored.key) }
      guard let slot = try storage.core.records(of: storage.collection)[address] else { return false }
      guard try slot.value(storage.coder).fetchedAt > unsaved.stored.fetchedAt else { return false }
    } catch {
      return false  // an unreadable record holds no newer value
    }
    state.withLock { $0.unsaved.remove(unsaved.stored.key) }
    return true
  }

  /// Removes from memory the entry of a record that another cache or process has deleted.
  ///
  /// An entry whose own commit is not published yet stays in memory, because the published state lacks its record until then.
  private nonisolated func forgetDeleted(_ entry: ResidentEntry<Key, Value>, recordKey: RecordKey) {
    // The revision and the record come from one snapshot. With two reads, the second could return a newer commit than the first.
    let snapshot = storage.snapshot
    guard entry.revision <= snapshot.revision, snapshot.records[recordKey] == nil else { return }
    state.withLock { state in
      let key = entry.stored.key
      // Another task may have stored the key again after the snapshot, and the entry of that task must stay.
      guard state.entries[key]?.version == entry.version else { return }
      state.entries[key] = nil
      state.evictionIndex?.remove(key)
    }
  }

  /// Makes an entry in memory, with its age, for a record that this cache did not store itself.
  private nonisolated func arrivedEntry(
    _ stored: CachedEntry<Key, Value>, revision: Revision, recordKey: RecordKey, older: ResidentEntry<Key, Value>?, uptime: Duration
  ) -> ResidentEntry<Key, Value> {
    let entry: ResidentEntry<Key, Value>
    if let older, older.stored.fetchedAt == stored.fetchedAt {
      // Equal dates of the fetch show that the record holds the same fetched value as `older`, written again by a migration or another
      // process. The age measured for `older` continues.
      entry = ResidentEntry(stored, of: older, at: revision)
    } else {
      // The record comes from an earlier run, another process or another cache. The record's age is computed with the setting that the wall
      // clock had when the commit arrived, because the clock may have been set since then.
      let present = arrivals.present(for: revision, at: uptime)
      entry = ResidentEntry(
        stored, version: .stored(revision), recordKey: recordKey, age: stored.age(at: present), uptime: uptime, wasAnswered: false,
        isMeasured: false)
      if !isReadOnly, stored.needsFutureNote(at: present) { storeFutureNote(of: entry, at: present) }
    }
    state.withLock { state in
      // Another lookup may have inserted the entry of a newer record meanwhile, which this older entry must not replace.
      if let newer = state.entries[stored.key], newer.revision >= revision { return }
      state.entries[stored.key] = entry
    }
    return entry
  }

  /// Stores ``CachedEntry/noticedInFutureAt`` of an entry in the background, unless another commit has replaced the entry.
  ///
  /// Only later launches and other processes need the stored date, so a failure to store it is not reported.
  private nonisolated func storeFutureNote(of entry: ResidentEntry<Key, Value>, at present: Date) {
    Task { [self] in
      let key = entry.stored.key
      do {
        let noted = entry.stored.noticedInFuture(at: present)
        let record = try storage.coder.encode(noted, decoding: true)
        let new = try await storage.core.write(nil) { [self] batch throws(RepositoryError) in
          // The write fails if the record no longer has the revision of the entry, so that the write never overwrites a newer value.
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
        // A failure to store the date has no effect in this process, which measures the age of the entry by the monotonic clock. The entry
        // of the failed commit is removed from memory: the store gives the revision of the failed commit to its next commit, which may
        // write another record.
        state.withLock { state in
          if let current = state.entries[key], current.replaces(entry.version) { state.entries[key] = entry }
        }
      }
    }
  }
}
