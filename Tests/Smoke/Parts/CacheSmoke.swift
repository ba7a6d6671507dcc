import Foundation
import Larder
import LarderSQLite
import LarderTesting

enum CacheSmoke {
  typealias Cache = CachedRepository<Int, Jar>
  private static let freshness = FreshnessPolicy(fresh: .seconds(60), usable: .hours(1), negative: .seconds(5), jitter: 0)

  static func run(_ directory: URL) async throws {
    try expect(
      freshness.fresh == .seconds(60) && freshness.usable == .hours(1) && freshness.negative == .seconds(5) && freshness.jitter == 0)
    let source = ScriptedSource<Int, Jar> { key, validator in
      if key == 99 { return .absent(reason: "no jar", lifetime: .seconds(9)) }
      return validator == nil ? .value(.plum, validator: "v", freshUntil: nil) : .notModified(freshUntil: nil)
    }
    let eviction = EvictionPolicy(countLimit: 10, byteLimit: 100_000)
    let retry = RetryPolicy(attempts: 2, base: .seconds(1), cap: .seconds(2))
    try expect(
      eviction.countLimit == 10 && eviction.byteLimit == 100_000 && retry.attempts == 2 && retry.base == .seconds(1)
        && retry.cap == .seconds(2))
    func file(_ name: String) -> URL { directory.appendingPathComponent(name) }
    let opened = try await Cache.open(jsonFile: file("a.json"))
    try expect(opened.healing == nil && opened.storage.openReport.isNew)
    let other = try await Cache.open(file: file("b.json")) { JSONFileBackend(file: $0) }
    let caches: [Cache] = [
      Cache(opened: opened, freshness: freshness, retry: .never, source: source),
      Cache(storage: other.storage, freshness: freshness, retry: .default, source: source),
      try await Cache.inMemory(freshness: freshness, source: source),
      try await Cache.open(jsonFile: file("c.json"), freshness: freshness, source: source),
      try await Cache.open(sqliteFile: file("d.sqlite"), freshness: freshness, eviction: .none, source: source),
      Cache(storage: try await LocalRepository(inMemory: .init()), freshness: .seconds(5)) { _ in .plum },
      try await Cache.inMemory(freshness: .minutes(5)) { _ in .plum },
      try await Cache.open(jsonFile: file("e.json"), freshness: .hours(5)) { _ in .plum },
      try await Cache.open(sqliteFile: file("e.sqlite"), freshness: .days(5)) { _ in .plum },
    ]
    for cache in caches {
      _ = try await cache.value(for: 1)
      try await cache.close()
    }
    let clock = ManualClock()
    let cache = try await Cache.inMemory(freshness: freshness, eviction: eviction, retry: retry, clock: clock, source: source)
    try await use(cache, clock)
    try await cache.close()
    try await heal(file("c.json"), source)
    let fetched = try await FunctionSource<Int, Jar> { _ in .plum }.fetch(1, validator: nil)
    guard case .value(.plum, nil, nil) = fetched else { throw SmokeFailure(description: "expected what the function returns") }
    try values()
  }

  private static func use(_ cache: Cache, _ clock: ManualClock) async throws {
    let updates = cache.updates(for: 1)
    var iterator = updates.makeAsyncIterator()
    let first = try await cache.value(for: 1)
    try expect(first.value == .plum && first.origin == .remote && first.state == .fresh && first.refreshError == nil && first.age == .zero)
    try expect(first.fetchedAt == clock.now && first.map(\.id).value == 1)
    try expect(await iterator.next()?.value == .plum)
    try await expect(cache.value(for: 1, policy: .cacheOnly).origin == .memory)
    clock.advance(by: .seconds(100))
    try await expect(cache.value(for: 1, policy: .staleWhileRevalidate).state == .stale)
    try await expect(cache.value(for: 1, policy: .networkFirst(timeout: .seconds(1))).state == .fresh)
    try await expect(cache.value(for: 1, policy: .networkOnly).origin == .remote)
    do {
      _ = try await cache.value(for: 99)
      throw SmokeFailure(description: "expected no jar")
    } catch CacheError.absent(let reason, let since) { try expect(reason == "no jar" && since == clock.now) }
    do {
      _ = try await cache.value(for: 5, policy: .cacheOnly)
      throw SmokeFailure(description: "expected nothing cached")
    } catch CacheError.notCached {}
    try expect(await cache.values(for: [1, 2], policy: .cacheFirst, maxConcurrentFetches: 2).count == 2)
    await cache.prefetch([3])
    let entry = try await cache.storage.find(by: 3)
    try expect(entry?.key == 3 && entry?.id == 3 && entry?.value == .plum && entry?.validator == "v" && (entry?.byteCount ?? 0) > 0)
    try expect(entry?.noticedInFutureAt == nil)
    await cache.relieve(.warning)
    await cache.relieve(.critical)
    try await cache.invalidate(3)
    try await cache.removeAll()
    try expect(cache.healing == nil)
    let statistics = cache.statistics
    try expect(statistics.fetches > 0 && statistics.hits > 0 && statistics.misses > 0 && statistics.negativeHits >= 0)
    try expect(statistics.notModified > 0 && statistics.staleServes > 0 && statistics.fetchErrors == 0 && statistics.storageErrors == 0)
    try expect(statistics.lastStorageError == nil && statistics.evictions[.count] == nil)
    try expectCodable(statistics)
    var sum = statistics + CacheStatistics()
    sum += statistics
    try expect(sum.fetches == 2 * statistics.fetches)
  }

  /// Opens a cache whose file is damaged: it begins anew, and keeps the file aside.
  private static func heal(_ file: URL, _ source: ScriptedSource<Int, Jar>) async throws {
    var bytes = try Data(contentsOf: file)
    for position in (bytes.count / 2)..<bytes.count { bytes[position] = 0xFF }
    try bytes.write(to: file)
    let cache = try await Cache.open(jsonFile: file, freshness: freshness, source: source)
    try expect(cache.healing?.movedFiles.isEmpty == false && cache.healing?.error.code != nil)
    try await cache.close()
  }

  private static func values() throws {
    try expect(
      FreshnessPolicy(fresh: .seconds(1)).usable == .hours(48) && CacheError.notCached.errorDescription == CacheError.notCached.description)
    let now = Date(timeIntervalSince1970: 0)
    let cached = Cached(value: 1, fetchedAt: now, age: .zero, state: .expired, origin: .disk, refreshError: nil)
    try expect(cached.value == 1 && Cached<Int>.State(rawValue: cached.state.rawValue) == .expired)
    try expect(Cached<Int>.Origin(rawValue: cached.origin.rawValue) == .disk)
    let entry = CachedEntry<Int, Jar>(
      key: 1, content: .value(.plum), fetchedAt: now, freshUntil: now, usableUntil: now, validator: nil, byteCount: 3)
    let read = try JSONDecoder().decode(CachedEntry<Int, Jar>.self, from: JSONEncoder().encode(entry))
    try expect(read.fetchedAt == now && read.freshUntil == now && read.usableUntil == now && read.byteCount > 0)
    if case .absent = read.content { throw SmokeFailure(description: "expected a value") }
    let causes: [CacheStatistics.EvictionCause] = [.bytes, .count, .expired, .memoryPressure]
    try expect(causes.allSatisfy { CacheStatistics.EvictionCause(rawValue: $0.rawValue) == $0 })
    let errors: [CacheError] = [
      .circuitOpen(until: now), .nothingToRevalidate, .quotaExceeded(until: now), .timedOut(.seconds(1)), .unanswered,
    ]
    try expect(errors.count == 5)
  }
}
