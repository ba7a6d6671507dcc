internal import Synchronization

extension CachedRepository {
  /// What is to be done for a caller, given what is stored.
  private enum Plan {
    case answer(Cached<Value>)
    case answerAndRefresh(Cached<Value>)
    case fetch
    case refuse(CacheError)
  }

  private nonisolated func plan(_ policy: FetchPolicy, _ sight: Sight<Key, Value>) -> Plan {
    switch policy {
    case .networkOnly, .networkFirst: return .fetch
    case .cacheFirst, .staleWhileRevalidate, .cacheOnly: break
    }
    let orElse = policy == .cacheOnly ? Plan.refuse(.notCached) : .fetch
    guard let found = sight.found else { return orElse }
    switch (found.entry.content, found.state) {
    case (.absent(let reason), .fresh):
      state.withLock { $0.statistics.negativeHits += 1 }
      return .refuse(.absent(reason: reason, since: found.entry.fetchedAt))
    case (.absent, _), (_, .expired):
      return orElse
    case (.value, .stale) where policy == .cacheFirst:
      return .fetch
    case (.value, let state):
      guard let cached = serve(found) else { return orElse }
      return state == .stale && policy == .staleWhileRevalidate ? .answerAndRefresh(cached) : .answer(cached)
    }
  }

  nonisolated(nonsending) func answer(_ key: Key, _ policy: FetchPolicy) async throws -> Cached<Value> {
    var sight = look(key)
    var isCounted = false
    while true {
      switch plan(policy, sight) {
      case .answer(let cached): return cached
      case .refuse(let error): throw error
      case .answerAndRefresh(let cached):
        refresh(key, sight)
        return cached
      case .fetch:
        if !isCounted, policy != .networkOnly, sight.found?.isUsable != true { state.withLock { $0.statistics.misses += 1 } }
        isCounted = true
        if let cached = try await fetch(key, policy, sight) { return cached }
        sight = look(key)
      }
    }
  }

  /// Fetches, or takes part in a fetch, and falls back on what is stored as the policy says; `nil` when something was stored meanwhile.
  private nonisolated(nonsending) func fetch(
    _ key: Key, _ policy: FetchPolicy, _ sight: Sight<Key, Value>
  ) async throws -> Cached<Value>? {
    if let error = heldOff(key, policy) { return try fallBack(key, policy, error) }
    var timeout: Duration?
    if case .networkFirst(let limit) = policy, sight.found?.isUsable == true { timeout = limit }
    // Who asks the source anyway does not care what was stored meanwhile.
    let isAutomatic = policy == .cacheFirst || policy == .staleWhileRevalidate
    while true {
      switch await take(key, after: isAutomatic ? sight : nil, timeout) {
      case .landed(.success(let found)):
        if let cached = found.cached() { return cached }
        throw found.absence
      case .landed(.failure(let error)): return try fallBack(key, policy, error)
      case .timedOut:
        if let cached = usable(key, CacheError.timedOut(timeout ?? .zero)) { return cached }
        timeout = nil
      case .cancelled: throw CancellationError()
      case .changed: return nil
      }
    }
  }

  /// The error of a provider who has asked for time, for those who would only ask because something is old.
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
    guard let found = look(key).found, found.isUsable else { return nil }
    return serve(found, error)
  }

  nonisolated(nonsending) func answers(
    _ keys: [Key], _ policy: FetchPolicy, _ limit: Int
  ) async -> [Key: Result<Cached<Value>, any Error>] {
    var results: [Key: Result<Cached<Value>, any Error>] = [:]
    var (rest, old): ([Key], [Key]) = ([], [])
    var seen: Set<Key> = []
    for key in keys where seen.insert(key).inserted {
      if let cached = hit(key, policy) {
        results[key] = .success(cached)
        continue
      }
      switch plan(policy, look(key)) {
      case .answer(let cached): results[key] = .success(cached)
      case .refuse(let error): results[key] = .failure(error)
      case .answerAndRefresh(let cached):
        results[key] = .success(cached)
        old.append(key)
      case .fetch: rest.append(key)
      }
    }
    for (key, result) in await gather(rest, policy, limit) { results[key] = result }
    // After the others, so that both together keep to the bound.
    if !old.isEmpty, !Task.isCancelled { Task { [self, old] in await fetchTogether(old, limit) { key in await self.revalidate(key) } } }
    return results
  }

  /// Refreshes a key for nobody in particular, and returns when that is over.
  private nonisolated(nonsending) func revalidate(_ key: Key) async {
    let sight = look(key)
    guard sight.found?.state != .fresh, mayRefresh(key) else { return }
    _ = await take(key, after: sight, nil)
  }

  private nonisolated(nonsending) func gather(
    _ keys: [Key], _ policy: FetchPolicy, _ limit: Int
  ) async -> [(Key, Result<Cached<Value>, any Error>)] {
    let results = Mutex<[(Key, Result<Cached<Value>, any Error>)]>([])
    await fetchTogether(keys, limit) { key in
      let result = await self.result(key, policy)
      results.withLock { $0.append((key, result)) }
    }
    return results.withLock { $0 }
  }

  /// Runs an operation on each key, so many at a time; over a source that gathers, on the keys of so many requests.
  private nonisolated(nonsending) func fetchTogether(
    _ keys: [Key], _ limit: Int, _ operation: @escaping @Sendable (Key) async -> Void
  ) async {
    guard let size = keysTogether.map({ min($0, keys.count) }), size > 0 else { return await forEach(keys, limit, operation) }
    let parts = stride(from: 0, to: keys.count, by: size).map { Array(keys[$0..<min($0 + size, keys.count)]) }
    await forEach(parts, limit) { part in
      let group = FetchGroup(part.count)
      await forEach(part, part.count) { key in await group.run { await operation(key) } }
    }
  }

  private nonisolated(nonsending) func result(_ key: Key, _ policy: FetchPolicy) async -> Result<Cached<Value>, any Error> {
    do { return .success(try await answer(key, policy)) } catch { return .failure(error) }
  }
}

/// Runs an operation on each element, so many at a time, in order.
private func forEach<Element: Sendable>(
  _ elements: [Element], _ limit: Int, _ operation: @escaping @Sendable (Element) async -> Void
) async {
  await withTaskGroup(of: Void.self) { group in
    for (index, element) in elements.enumerated() {
      if index >= max(limit, 1) { await group.next() }
      group.addTask { await operation(element) }
    }
  }
}
