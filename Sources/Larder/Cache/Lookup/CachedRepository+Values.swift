internal import Synchronization

extension CachedRepository {
  /// Returns the values of several keys: each the value, or the error that ``value(for:policy:)`` would throw.
  ///
  /// Answers from storage come first. With ``FetchPolicy/staleWhileRevalidate``, stale values are refreshed in the
  /// background after this returns, within the same bound.
  /// - Parameters:
  ///   - keys: The keys.
  ///   - policy: How each is answered.
  ///   - maxConcurrentFetches: How many keys are fetched at a time, at least one: 6 unless given. Over a ``BatchRemoteSource``, how many
  ///     requests' worth of keys.
  public nonisolated(nonsending) func values(
    for keys: [Key], policy: FetchPolicy = .cacheFirst, maxConcurrentFetches: Int = 6
  ) async -> [Key: Result<Cached<Value>, any Error>] {
    var results: [Key: Result<Cached<Value>, any Error>] = [:]
    var (rest, old): ([Key], [Key]) = ([], [])
    var seen: Set<Key> = []
    for key in keys where seen.insert(key).inserted {
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
    for (key, result) in await gather(rest, policy, maxConcurrentFetches) { results[key] = result }
    // After the others, so that both together keep to the bound.
    if !old.isEmpty, !Task.isCancelled {
      Task { [self, old] in await fetchTogether(old, maxConcurrentFetches) { key in await self.revalidate(key) } }
    }
    return results
  }

  /// Refreshes a key in the background, and returns when that is over.
  private nonisolated(nonsending) func revalidate(_ key: Key) async {
    let lookup = lookup(key)
    guard lookup.state != .fresh, mayRefresh(key) else { return }
    _ = await join(key, after: lookup, nil)
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
