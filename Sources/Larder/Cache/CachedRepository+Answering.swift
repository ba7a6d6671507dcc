internal import Foundation
internal import Synchronization

// The slow path of `value(for:)` looks the key's record up in the store, and decides by the fetch policy. If the call must fetch, it joins
// a flight, which is the running fetch that all callers of the key share.

extension CachedRepository {
  /// Returns the entry of a key if its value is fresh and was returned before, or else `nil`, so that the caller looks the record up.
  ///
  /// A returned entry is counted as a hit. `freshEntry` returns the same entry as ``lookup(_:)`` followed by ``decision(_:_:)``, but
  /// decodes no record. The published records are read only if the store has published a commit since the entry was last compared with its
  /// record.
  nonisolated func freshEntry(_ key: Key, _ policy: FetchPolicy, at uptime: Duration) -> ResidentEntry<Key, Value>? {
    switch policy {
    case .networkOnly, .networkFirst: return nil
    case .cacheFirst, .staleWhileRevalidate, .cacheOnly: break
    }
    // `openPublication` is `nil` for a closed store. For a closed store, the lookup that follows counts an error of the storage.
    guard let publication = storage.core.openPublication else { return nil }
    // The closure assigns a variable instead of returning the entry, because a generic result would cost a look-up of its type at run time
    // in every hit.
    var hit: ResidentEntry<Key, Value>?
    state.withLock { state in
      // An unsaved value is newer than the stored entry of its key. While any key has an unsaved value, `freshEntry` returns `nil`, and the
      // caller's lookup reads the unsaved values first.
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
  /// After a match, `confirms` stores the number of the store's latest publication in the entry, so that the next call does not compare the
  /// entry with the record again.
  private nonisolated func confirms(_ entry: ResidentEntry<Key, Value>) -> Bool {
    let (records, publication) = storage.core.publishedRecords(of: storage.collection)
    do throws(RepositoryError) {
      guard let recordKey = entry.recordKey, try records[recordKey]?.revision == entry.revision else { return false }
    } catch {
      return false  // `lookup` reads the record again and counts the error
    }
    entry.confirm(at: publication)
    return true
  }

  /// Looks a key up and does what the fetch policy demands, until there is an answer or an error.
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
        // A call counts at most one miss, although the outcome `.changed` of a fetch makes the call look the key up again.
        if !isCounted, policy != .networkOnly, !lookup.isUsable { state.withLock { $0.statistics.misses += 1 } }
        isCounted = true
        if let cached = try await fetchOrFallBack(key, policy: policy, after: lookup) { return cached }
        lookup = self.lookup(key)
      }
    }
  }

  // MARK: Decision

  /// The next step of a call for a value, after the lookup of the key.
  enum Decision {
    case answer(Cached<Value>)
    case answerAndRefresh(Cached<Value>)
    case fetch
    case refuse(CacheError)
  }

  /// Decides by the fetch policy how a call continues after the lookup of the key, and counts an answer from storage.
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

  /// Returns the answer from a lookup, and counts it as a hit (fresh) or a stale serve, and as a use of the entry.
  private nonisolated func countedAnswer(_ lookup: Lookup<Key, Value>, _ refreshError: (any Error)? = nil) -> Cached<Value>? {
    guard let entry = lookup.entry, let cached = lookup.cached(refreshError) else { return nil }
    state.withLock { $0.countAnswer(entry, isFresh: cached.state == .fresh) }
    return cached
  }

  // MARK: Fetching

  /// Fetches the value of a key, and returns the stored value if the fetch fails and the policy allows it.
  ///
  /// `fetchOrFallBack` returns `nil` if the caller must look the key up again, because the stored entry has changed or a cancelled fetch
  /// has no result.
  private nonisolated(nonsending) func fetchOrFallBack(
    _ key: Key, policy: FetchPolicy, after lookup: Lookup<Key, Value>
  ) async throws -> Cached<Value>? {
    // `.cacheFirst` and `.staleWhileRevalidate` return a value that another call stored after the lookup. `.networkFirst` and
    // `.networkOnly` fetch in any case.
    let isAutomatic = policy == .cacheFirst || policy == .staleWhileRevalidate
    if isAutomatic, let error = flights.holdOffError(of: key) { return try fallBack(key, policy: policy, error: error) }
    var timeout: Duration?
    // Without a usable stored value the call cannot return one after a timeout, so the call waits for as long as the fetch takes.
    if case .networkFirst(let limit) = policy, lookup.isUsable { timeout = limit }
    while true {
      switch await joinFlight(of: key, after: isAutomatic ? lookup : nil, timeout: timeout) {
      case .ended(.success(let entry)):
        if let cached = entry.cached(at: clock.uptime, .remote) { return cached }
        throw entry.absence
      case .ended(.failure(let error)): return try fallBack(key, policy: policy, error: error)
      case .timedOut:
        if let cached = usableAnswer(key, CacheError.timedOut(timeout ?? .zero)) { return cached }
        // The stored value has expired during the wait and can no longer be returned, so the call joins the running fetch again without a
        // timeout.
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

  /// Joins the running fetch of a key, or begins one if there is none, and waits until the fetch ends.
  ///
  /// - Parameters:
  ///   - lookup: Result of the caller's lookup of the key. If another version of the entry is stored by now, no fetch begins and the
  ///     outcome is `.changed`.
  ///   - timeout: Longest time that the caller waits. The fetch continues after the timeout of a caller.
  nonisolated(nonsending) func joinFlight(
    of key: Key, after lookup: Lookup<Key, Value>?, timeout: Duration?
  ) async -> Flights<Key, ResidentEntry<Key, Value>>.Outcome {
    await flights.join(key, timeout: timeout, unless: { lookup.map { hasChanged(key, since: $0) } ?? false }, fetch: fetch(of: key))
  }

  /// Begins a fetch of a key in the background, or makes the running fetch of the key continue even if all of its callers leave.
  nonisolated func refresh(_ key: Key, _ lookup: Lookup<Key, Value>) {
    guard !Task.isCancelled, flights.mayRefresh(key) else { return }
    flights.begin(key, unless: { hasChanged(key, since: lookup) }, fetch: fetch(of: key))
  }

  /// Returns the work of a fetch of a key: a request with the validator of the stored value, and the commit of the request's result.
  private nonisolated func fetch(of key: Key) -> Flights<Key, ResidentEntry<Key, Value>>.Fetch {
    { [self] flight, ticket in
      // The entry is looked up again when the fetch starts, because another fetch may have stored a newer validator after the caller's
      // lookup.
      try await requestAndStore(key, base: lookup(key).entry?.stored, flight: flight, ticket: ticket)
    }
  }

  /// True if the stored or unsaved entry of a key has changed since `lookup`.
  ///
  /// ``Flights`` calls `hasChanged` with the lock of ``Flights`` held.
  private nonisolated func hasChanged(_ key: Key, since lookup: Lookup<Key, Value>) -> Bool {
    // An unsaved entry is compared first, because it is newer than the stored record of the key: the storage has failed to save the entry.
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

  /// Returns the entry of a key with its version and age, without waiting and without counting a use of the entry.
  ///
  /// A record that cannot be read counts as a missing entry, and the statistics count an error of the storage.
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
      // `entry.at` returns `entry` if `slot` holds the record of `entry`. While the commit of `entry` is not published, `entry.at` returns
      // the earlier entry that `entry` replaces.
      if let entry = entry?.at(slot.revision) { return Lookup(entry, at: uptime, recordKey: address) }
      let arrived = arrivedEntry(
        try slot.value(storage.coder), revision: slot.revision, recordKey: address, older: entry, uptime: uptime)
      return Lookup(arrived, at: uptime, recordKey: address)
    } catch {
      state.withLock { $0.countStorageError(error) }
      // The lookup's result has the version of the record even if the record cannot be read. Without the version, `hasChanged` would take
      // the unreadable record for a new one, and no fetch of the key could begin.
      return Lookup(nil, at: uptime, recordKey: recordKey, version: version)
    }
  }

  /// True if another process has stored a newer value of a key than the unsaved value of this read-only cache.
  ///
  /// `isSuperseded` also removes an unsaved value that is older than the stored value. A cache that can write removes an unsaved value when
  /// it stores the next value of the key.
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
  /// An entry whose own commit is not published yet stays in memory, because the published records do not contain its record yet.
  private nonisolated func forgetDeleted(_ entry: ResidentEntry<Key, Value>, recordKey: RecordKey) {
    // The revision and the record are read from one snapshot. With two separate reads, the second read could see a newer commit than the
    // first read.
    let snapshot = storage.snapshot
    do throws(RepositoryError) {
      guard entry.revision <= snapshot.revision, try snapshot.records[recordKey] == nil else { return }
    } catch {
      return  // an unreadable record is not a deleted one
    }
    state.withLock { state in
      let key = entry.stored.key
      // Another task may have stored the key again after the snapshot was taken, and the entry of that task must stay in memory.
      guard state.entries[key]?.version == entry.version else { return }
      state.entries[key] = nil
      state.evictionIndex?.remove(key)
    }
  }

  /// Makes the entry in memory, with its age, for a record that the cache has read from the storage.
  private nonisolated func arrivedEntry(
    _ stored: CachedEntry<Key, Value>, revision: Revision, recordKey: RecordKey, older: ResidentEntry<Key, Value>?, uptime: Duration
  ) -> ResidentEntry<Key, Value> {
    let entry: ResidentEntry<Key, Value>
    if let older, older.stored.fetchedAt == stored.fetchedAt {
      // Equal dates of the fetch show that the record holds the same fetched value as `older`, written again by a migration or another
      // process. The age that was measured for `older` continues.
      entry = ResidentEntry(stored, of: older, at: revision)
    } else {
      // The record comes from an earlier run, another process or another cache. The record's age is computed with the setting that the wall
      // clock had when the record's commit arrived, because the wall clock may have been set since then.
      let present = arrivals.present(for: revision, at: uptime)
      entry = ResidentEntry(
        stored, version: .stored(revision), recordKey: recordKey, age: stored.age(at: present), uptime: uptime, wasAnswered: false,
        isMeasured: false)
      if !isReadOnly, stored.needsFutureNote(at: present) { storeFutureNote(of: entry, at: present) }
    }
    state.withLock { state in
      // Another lookup may have inserted the entry of a newer record meanwhile, and an older entry must not replace a newer entry.
      if let newer = state.entries[stored.key], newer.revision >= revision { return }
      state.entries[stored.key] = entry
    }
    return entry
  }

  /// Stores the date ``CachedEntry/noticedInFutureAt`` of an entry in the background, unless another commit has replaced the entry.
  ///
  /// Only later launches and other processes need the stored date, so a failure to store the date is not reported.
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
        // that the failed commit has put into memory is replaced by the earlier entry. If the entry of the failed commit stayed in memory,
        // a record of the store's next commit, which gets the same revision, could be taken for the record of the entry.
        state.withLock { state in
          if let current = state.entries[key], current.replaces(entry.version) { state.entries[key] = entry }
        }
      }
    }
  }
}
