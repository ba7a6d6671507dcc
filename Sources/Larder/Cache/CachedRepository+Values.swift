internal import Synchronization

extension CachedRepository {
  /// Returns the values of several keys, fetching those that the policy does not answer from storage.
  ///
  /// The result for each key is the value, or the error that ``value(for:policy:)`` would throw.
  ///
  /// `values` first answers the keys for which the policy accepts the stored entry, and then fetches the other keys. With
  /// ``FetchPolicy/staleWhileRevalidate``, stale values are refreshed in the background after the call returns, also with at most
  /// `maxConcurrentFetches` fetches at a time.
  /// - Parameters:
  ///   - keys: Keys of the values. A key that occurs twice is looked up once.
  ///   - policy: Fetch policy, which applies to each key.
  ///   - maxConcurrentFetches: Largest number of keys to fetch at a time, at least one and 6 by default. With a ``BatchRemoteSource``, the
  ///     largest number of requests to run at a time.
  public nonisolated(nonsending) func values(
    for keys: [Key], policy: FetchPolicy = .cacheFirst, maxConcurrentFetches: Int = 6
  ) async -> [Key: Result<Cached<Value>, any Error>] {
    var results: [Key: Result<Cached<Value>, any Error>] = [:]
    var (rest, old): ([Key], [Key]) = ([], [])
    var seen: Set<Key> = []
    for key in keys where seen.insert(key).inserted {
      // `freshEntry` is called first, as in `value(for:)`, because an entry that is fresh in memory needs no lookup of its record.
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
    // The refreshes in the background begin after the fetches of the call, so that at most `maxConcurrentFetches` requests run at a time.
    if !old.isEmpty, !Task.isCancelled {
      Task { [self, old] in await fetchTogether(old, limit: maxConcurrentFetches) { key in await self.revalidate(key) } }
    }
    return results
  }

  /// Fetches a key whose value is not fresh, and returns when the fetch of the key has ended.
  private nonisolated(nonsending) func revalidate(_ key: Key) async {
    // The key is looked up again, because another caller may have fetched the key while the refresh waited for its turn.
    let lookup = lookup(key)
    guard lookup.state != .fresh, flights.mayRefresh(key) else { return }
    _ = await joinFlight(of: key, after: lookup, timeout: nil)
  }

  /// Fetches several keys and returns a result for each key, in any order.
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

  /// Runs an operation on each of several keys, on at most `limit` keys at a time.
  ///
  /// If the source gathers several keys into one request, `limit` is the number of requests and not the number of keys.
  private nonisolated(nonsending) func fetchTogether(
    _ keys: [Key], limit: Int, _ operation: @escaping @Sendable (Key) async -> Void
  ) async {
    guard let size = keysTogether.map({ min($0, keys.count) }), size > 0 else { return await forEach(keys, limit: limit, operation) }
    let parts = stride(from: 0, to: keys.count, by: size).map { Array(keys[$0..<min($0 + size, keys.count)]) }
    await forEach(parts, limit: limit) { part in
      // The keys of one request form a ``FetchGroup``. Without the group, the first key that reaches the source would start a request
      // alone.
      let group = FetchGroup(part.count)
      await forEach(part, limit: part.count) { key in await group.run { await operation(key) } }
    }
  }

  /// Returns the answer for a key, or the error that the fetch has thrown, as a `Result`.
  private nonisolated(nonsending) func result(_ key: Key, _ policy: FetchPolicy) async -> Result<Cached<Value>, any Error> {
    do { return .success(try await answer(key, policy)) } catch { return .failure(error) }
  }
}

/// Runs an operation on each element, with at most `limit` operations at a time, which start in the order of the elements.
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
