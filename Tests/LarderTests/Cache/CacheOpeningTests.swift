import Foundation
import LarderSQLite
import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct CacheOpeningTests {
  private static let freshness = FreshnessPolicy(fresh: .seconds(3600), usable: .hours(48), jitter: 0)
  private let source = ScriptedSource<String, Int> { key, _ in .value(key.count) }
  private let clock = ManualClock()

  @Test func aCacheOpensInOneCallAndAnswersFromItsFileTheNextTime() async throws {
    let directory = try TemporaryDirectory()
    let first = try await CachedRepository.open(
      jsonFile: directory.file("cache.json"), freshness: Self.freshness, clock: clock, source: source)
    #expect(try await first.value(for: "four").origin == .remote)
    #expect(first.healing == nil)
    try await first.close()
    let second = try await CachedRepository.open(
      jsonFile: directory.file("cache.json"), freshness: Self.freshness, clock: clock, source: source)
    #expect(try await second.value(for: "four").origin == .disk)
    try await second.close()
    #expect(source.callCount == 1)
  }

  @Test func aDamagedFileIsHealedAndReportedByTheCache() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.json")
    try Data("{ this is no store".utf8).write(to: file)
    do throws(RepositoryError) {
      let refused = try await CachedRepository.open(jsonFile: file, freshness: Self.freshness, clock: clock, source: source)
      Issue.record("it opened somebody else's file: \(refused.storage.openReport)")
    } catch {
      #expect(error.code == .notOurStore)
    }
    try FileManager.default.removeItem(at: file)
    let cache = try await CachedRepository.open(jsonFile: file, freshness: Self.freshness, clock: clock, source: source)
    await cache.prefetch((0..<50).map { "key \($0)" })
    try await cache.close()
    var bytes = try Data(contentsOf: file)
    bytes[bytes.count / 2] ^= 0x10
    try bytes.write(to: file)
    let healed = try await CachedRepository.open(jsonFile: file, freshness: Self.freshness, clock: clock, source: source)
    #expect(healed.healing?.error.code == .corrupted)
    #expect(healed.healing?.movedFiles == [file.path + "-damaged"])
    #expect(try await healed.value(for: "four").value == 4)
    try await healed.close()
  }

  @Test func aCacheInMemoryNeedsNoFile() async throws {
    let cache = try await CachedRepository.inMemory(freshness: Self.freshness, clock: clock, source: source)
    #expect(try await cache.value(for: "four").origin == .remote)
    #expect(try await cache.value(for: "four").origin == .memory)
  }

  // MARK: Reading only

  @Test func aCacheOverAReadOnlyStoreAnswersAndWritesNothing() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.json")
    let writer = try await CachedRepository.open(jsonFile: file, freshness: Self.freshness, clock: clock, source: source)
    await writer.prefetch(["four", "old"])
    try await writer.close()
    let before = try Data(contentsOf: file)

    let cache = try await CachedRepository.open(
      jsonFile: file, freshness: Self.freshness, eviction: EvictionPolicy(countLimit: 1), clock: clock,
      options: StoreOptions(access: .readOnly), source: source)
    #expect(try await cache.value(for: "four").origin == .disk)
    // What is not there is fetched and answered, kept in memory, and not stored.
    #expect(try await cache.value(for: "new").origin == .remote)
    #expect(try await cache.value(for: "new").origin == .memory)
    #expect(source.callCount == 3)
    #expect(cache.storage.snapshot.count == 2)
    await cache.relieve(.critical)
    await #expect(throws: RepositoryError.self) { try await cache.invalidate("four") }
    await #expect(throws: RepositoryError.self) { try await cache.removeAll() }
    #expect(try await cache.value(for: "four").value == 4)
    #expect(cache.statistics.storageErrors == 0)
    #expect(cache.statistics.evictions.isEmpty)
    // A clock that was set back is noted nowhere.
    clock.setWall(by: -1_000_000)
    let again = CachedRepository(storage: cache.storage, freshness: Self.freshness, clock: clock, source: source)
    #expect(try await again.value(for: "old", policy: .cacheOnly).state == .stale)
    try await cache.close()
    #expect(try directory.names == ["cache.json"])
    #expect(try Data(contentsOf: file) == before)
  }

  @Test func aReadOnlyCacheSeesWhatTheWriterStoresAfterItsOwnFetch() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.sqlite")
    let calls = Mutex(0)
    let numbers = ScriptedSource<String, Int> { _, _ in
      .value(
        calls.withLock { count in
          count += 1
          return count
        })
    }
    let writer = try await CachedRepository.open(sqliteFile: file, freshness: Self.freshness, clock: clock, source: numbers)
    let reader = try await CachedRepository.open(
      sqliteFile: file, freshness: Self.freshness, clock: clock, options: StoreOptions(access: .readOnly), source: numbers)
    let fetched = try await reader.value(for: "place").value
    clock.advance(by: .seconds(60))
    let stored = try await writer.value(for: "place", policy: .networkOnly).value
    #expect(stored != fetched)
    try await reader.storage.refresh()
    #expect(try await reader.value(for: "place", policy: .cacheOnly).value == stored)
    try await reader.close()
    try await writer.close()
  }

  // MARK: Entries and counts

  @Test func anEntryThatAProgramMakesIsServed() async throws {
    let cache = try await CachedRepository.inMemory(freshness: Self.freshness, clock: clock, source: source)
    let entry = CachedEntry(
      key: "made", content: .value(7), fetchedAt: clock.now, freshUntil: clock.now + 60, usableUntil: clock.now, validator: "v")
    #expect(entry.usableUntil == entry.freshUntil)
    #expect(entry.byteCount == 1)
    try await cache.storage.save(entry)
    let answer = try await cache.value(for: "made", policy: .cacheOnly)
    #expect(answer.value == 7 && answer.state == .fresh)
    let late = CachedEntry<String, Int>(
      key: "late", content: .absent(reason: "none"), fetchedAt: clock.now, freshUntil: clock.now - 60, usableUntil: clock.now - 60,
      byteCount: -1)
    #expect(late.freshUntil == late.fetchedAt && late.usableUntil == late.fetchedAt && late.byteCount == 0)
  }

  @Test func countsAreAddedAndKeptAsJSON() async throws {
    var first = CacheStatistics()
    (first.hits, first.misses, first.staleServes, first.negativeHits, first.fetches) = (1, 2, 3, 4, 5)
    (first.notModified, first.fetchErrors, first.storageErrors, first.lastStorageError) = (6, 7, 8, .full)
    first.evictions = [.count: 9, .expired: 10]
    var second = CacheStatistics()
    second.hits = 100
    second.evictions = [.expired: 100, .bytes: 1]

    let sum = first + second
    #expect(sum.hits == 101 && sum.misses == 2 && sum.staleServes == 3 && sum.negativeHits == 4 && sum.fetches == 5)
    #expect(sum.notModified == 6 && sum.fetchErrors == 7 && sum.storageErrors == 8 && sum.lastStorageError == .full)
    #expect(sum.evictions == [.count: 9, .expired: 110, .bytes: 1])
    second += first
    #expect(second == sum)

    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let data = try encoder.encode(first)
    #expect(
      String(decoding: data, as: UTF8.self) == """
        {"evictions":{"count":9,"expired":10},"fetchErrors":7,"fetches":5,"hits":1,"lastStorageError":"full","misses":2,"negativeHits":4,\
        "notModified":6,"staleServes":3,"storageErrors":8}
        """)
    #expect(try JSONDecoder().decode(CacheStatistics.self, from: data) == first)
    // Written by another version: what is missing is 0, and what is unknown is left out.
    let other = try JSONDecoder().decode(
      CacheStatistics.self, from: Data(#"{"hits":3,"evictions":{"count":1,"boredom":2},"lastStorageError":"new"}"#.utf8))
    #expect(other.hits == 3 && other.evictions == [.count: 1] && other.lastStorageError == nil)
  }
}
