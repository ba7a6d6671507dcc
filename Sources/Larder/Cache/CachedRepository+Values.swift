internal import Synchronization

extension CachedRepository {
  /// Returns the values of several keys.
  ///
  /// Each result is the value, or the error that ``value(for:policy:)`` would throw.
  ///
  /// Answers from storage come first. With ``FetchPolicy/staleWhileRevalidate``, stale values are refreshed in the background after this
  /// call returns, within the same limit.
  /// - Parameters:
  ///   - keys: Keys of the values. A key that occurs twice is looked up once.
  ///   - policy: Policy for each key.
  ///   - maxConcurrentFetches: Number of keys to fetch at a time, at least one and 6 by default. Over a ``BatchRemoteSource``, the number
  ///     of requests to run at a time.
  public nonisolated(nonsending) func values(
    for keys: [Key], policy: FetchPolicy = .cacheFirst, maxConcurrentFetches: Int = 6
  ) async -> [Key: Result<Cached<Value>, any Error>] {
    var results: [Key: Result<Cached<Value>, any Error>] = [:]
    var (rest, old): ([Key], [Key]) = ([], [])
    var seen: Set<Key> = []
    for key in keys where seen.insert(key).inserted {
      // The fast path of `value(for:)`, so that a list of hits costs no lookup of records.
      let uptime = clock.uptime
      if let entry = freshEntry(key, policy, at: uptime), let value = entry.value {
        results[key] = .success(entry.hit(value, at: uptime))
        continue
      }
      switch decision(policy, lookup(key)) {
      case .answer(let cached): results[key] = .success(cached)
      case .refuse(let error): results[key] = .failure(error)
      case .answerAndRefresh(let cached):
        results[key] = .success(cached)
        old.append(key)
      case .fetch: rest.append(key)
      }
    }
    for (key, result) in await fetchedResults(of: rest, policy: policy, limit: maxConcurrentFetches) { results[key] = result }
    // After the fetches of this call, so that both together keep to the limit.
    if !old.isEmpty, !Task.isCancelled {
      Task { [self, old] in await fetchTogether(old, limit: maxConcurrentFetches) { key in await self.revalidate(key) } }
    }
    return results
  }

  /// Refreshes a key that is still not fresh, and returns when its flight has ended.
  private nonisolated(nonsending) func revalidate(_ key: Key) async {
    // Looked up again: another caller may have fetched the key while this one waited for its turn.
    let lookup = lookup(key)
    guard lookup.state != .fresh, flights.mayRefresh(key) else { return }
    _ = await joinFlight(of: key, after: lookup, timeout: nil)
  }

  /// Fetches several keys and returns a result for each, in no order.
  private nonisolated(nonsending) func fetchedResults(
    of keys: [Key], policy: FetchPolicy, limit: Int
  ) async -> [(Key, Result<Cached<Value>, any Error>)] {
    let results = Mutex<[(Key, Result<Cached<Value>, any Error>)]>([])
    await fetchTogether(keys, limit: limit) { key in
      let result = await self.result(key, policy)
      results.withLock { $0.append((key, result)) }
    }
    return results.withLock { $0 }
  }

  /// Runs an operation on each key, `limit` keys at a time.
  ///
  /// Over a source that gathers keys, on the keys of `limit` requests at a time.
  private nonisolated(nonsending) func fetchTogether(
    _ keys: [Key], limit: Int, _ operation: @escaping @Sendable (Key) async -> Void
  ) async {
    guard let size = keysTogether.map({ min($0, keys.count) }), size > 0 else { return await forEach(keys, limit: limit, operation) }
    let parts = stride(from: 0, to: keys.count, by: size).map { Array(keys[$0..<min($0 + size, keys.count)]) }
    await forEach(parts, limit: limit) { part in
      // One group for each request's worth of keys, or the first key that arrives would start a request alone.
      let group = FetchGroup(part.count)
      await forEach(part, limit: part.count) { key in await group.run { await operation(key) } }
    }
  }

  /// Returns the answer for a key, or its error, as a result.
  private nonisolated(nonsending) func result(_ key: Key, _ policy: FetchPolicy) async -> Result<Cached<Value>, any Error> {
    do { return .success(try await answer(key, policy)) } catch { return .failure(error) }
  }
}

/// Runs an operation on each element, at most `limit` at a time, and starts them in order.
private func forEach<Element: Sendable>(
  _ elements: [Element], limit: Int, _ operation: @escaping @Sendable (Element) async -> Void
) async {
  await withTaskGroup(of: Void.self) { group in
    for (index, element) in elements.enumerated() {
      if index >= max(limit, 1) { await group.next() }
      group.addTask { await operation(element) }
    }
  }
}
