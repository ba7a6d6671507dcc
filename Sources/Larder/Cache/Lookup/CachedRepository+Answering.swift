internal import Synchronization

extension CachedRepository {
  /// The step that follows a lookup.
  enum Decision {
    case answer(Cached<Value>)
    case answerAndRefresh(Cached<Value>)
    case fetch
    case refuse(CacheError)
  }

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
      guard let cached = counted(lookup) else { return orElse }
      return state == .stale && policy == .staleWhileRevalidate ? .answerAndRefresh(cached) : .answer(cached)
    }
  }

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
        if !isCounted, policy != .networkOnly, !lookup.isUsable { state.withLock { $0.statistics.misses += 1 } }
        isCounted = true
        if let cached = try await fly(key, policy, lookup) { return cached }
        lookup = self.lookup(key)
      }
    }
  }

  /// Fetches, or takes part in a fetch, and falls back on what is stored as the policy says; `nil` when something was stored meanwhile.
  private nonisolated(nonsending) func fly(
    _ key: Key, _ policy: FetchPolicy, _ lookup: Lookup<Key, Value>
  ) async throws -> Cached<Value>? {
    if let error = heldOff(key, policy) { return try fallBack(key, policy, error) }
    var timeout: Duration?
    if case .networkFirst(let limit) = policy, lookup.isUsable { timeout = limit }
    // A policy that asks the source anyway does not care what was stored meanwhile.
    let isAutomatic = policy == .cacheFirst || policy == .staleWhileRevalidate
    while true {
      switch await join(key, after: isAutomatic ? lookup : nil, timeout) {
      case .ended(.success(let entry)):
        if let cached = entry.cached(at: clock.uptime, .remote) { return cached }
        throw entry.absence
      case .ended(.failure(let error)): return try fallBack(key, policy, error)
      case .timedOut:
        if let cached = usable(key, CacheError.timedOut(timeout ?? .zero)) { return cached }
        timeout = nil
      case .cancelled: throw CancellationError()
      case .changed: return nil
      }
    }
  }

  /// Returns the error of a provider that has asked for time, for policies that would ask only because a value is old.
  private nonisolated func heldOff(_ key: Key, _ policy: FetchPolicy) -> (any Error)? {
    guard policy == .cacheFirst || policy == .staleWhileRevalidate else { return nil }
    let uptime = clock.uptime
    return state.withLock { $0.current[key] == nil ? $0.holdOffs.error(key, uptime) : nil }
  }

  private nonisolated func fallBack(_ key: Key, _ policy: FetchPolicy, _ error: any Error) throws -> Cached<Value> {
    guard policy != .networkOnly, let cached = usable(key, error) else { throw error }
    return cached
  }

  /// Returns what is stored and usable at this moment, marked with why it is not newer.
  private nonisolated func usable(_ key: Key, _ error: any Error) -> Cached<Value>? {
    let lookup = lookup(key)
    return lookup.isUsable ? counted(lookup, error) : nil
  }

  /// Returns the answer with what was found, and counts it as a use of the entry.
  private nonisolated func counted(_ lookup: Lookup<Key, Value>, _ refreshError: (any Error)? = nil) -> Cached<Value>? {
    guard let entry = lookup.entry, let cached = lookup.cached(refreshError) else { return nil }
    state.withLock { $0.countAnswer(entry, isFresh: cached.state == .fresh) }
    return cached
  }
}
