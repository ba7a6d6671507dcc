import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct CacheStorageTests {
  @Test func aValueIsSavedAndReadBackBeforeItIsServed() async throws {
    /// A value that its own coding changes.
    struct Rounded: Codable, Sendable, Equatable {
      var number: Double
      init(number: Double) { self.number = number }
      init(from decoder: any Decoder) throws { number = try decoder.singleValueContainer().decode(Double.self).rounded() }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(number)
      }
    }
    let storage = try await LocalRepository<CachedEntry<String, Rounded>>(inMemory: .init())
    let cache = CachedRepository(
      storage: storage, freshness: CacheWorld.freshness, source: ScriptedSource<String, Rounded> { _, _ in .value(Rounded(number: 1.4)) })
    #expect(try await cache.value(for: "a").value.number == 1)
    #expect(try await cache.value(for: "a").value.number == 1)
  }

  @Test func aCallerGetsNothingBeforeItIsStored() async throws {
    let world = try await CacheWorld()
    world.disk.hold(.commit)
    let isAnswered = Flag()
    let task = Task {
      _ = try await world.cache.value(for: "a")
      isAnswered.set()
    }
    await world.disk.waitUntilHeld(.commit)
    #expect(!isAnswered.isSet)
    world.disk.release(.commit)
    try await task.value
    #expect(try await world.storage.find(by: "a")?.value == 1)
  }

  @Test func aFullDiskFailsNoFetchAndBringsNoStormOfRequests() async throws {
    for code in [RepositoryError.Code.full, .inputOutput] {
      let world = try await CacheWorld()
      world.disk.fail(.commit, with: RepositoryError(code))
      let cached = try await world.cache.value(for: "four")
      #expect(cached.value == 4)
      #expect(cached.refreshError == nil)
      #expect(world.cache.statistics.storageErrors == 1)
      #expect(world.cache.statistics.lastStorageError == code)
      #expect(try await world.storage.find(by: "four") == nil)
      // Kept in memory meanwhile, and aging there.
      for _ in 0..<10 { #expect(try await world.cache.value(for: "four").value == 4) }
      #expect(world.source.callCount == 1)
      world.clock.advance(by: .hours(2))
      #expect(try await world.cache.value(for: "four", policy: .cacheOnly).state == .stale)
      // The disk has room again.
      #expect(try await world.cache.value(for: "four").state == .fresh)
      #expect(try await world.storage.find(by: "four")?.value == 4)
    }
  }

  @Test func aNewerValueThatCouldNotBeStoredIsServedBeforeTheStoredOne() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    _ = try await world.cache.value(for: "a")
    world.disk.fail(.commit, with: RepositoryError(.full))
    world.source.answer("a", .success(.value(7)))
    #expect(try await world.cache.value(for: "a", policy: .networkOnly).value == 7)
    #expect(try await world.cache.value(for: "a").value == 7)
    #expect(try await world.storage.find(by: "a")?.value == 1)
  }

  @Test func aPoisonedOrClosedStoreFailsNoFetch() async throws {
    let world = try await CacheWorld()
    world.disk.fail(.commit, with: RepositoryError(.outcomeUnknown))
    #expect(try await world.cache.value(for: "a").value == 1)
    #expect(try await world.cache.value(for: "bb").value == 2)
    try? await world.storage.close()
    #expect(try await world.cache.value(for: "ccc").value == 3)
    #expect(try await world.cache.value(for: "ccc").value == 3)
    #expect(world.source.callCount == 3)
  }

  @Test func whatCouldNotBeStoredIsBounded() async throws {
    let world = try await CacheWorld()
    try await world.storage.close()
    await world.cache.prefetch((0..<500).map { "key \($0)" })
    var kept = 0
    for number in 0..<500 {
      if await failure({ try await world.cache.value(for: "key \(number)", policy: .cacheOnly) }) == nil { kept += 1 }
    }
    #expect(kept == 100)
  }

  @Test func anInvalidationForgetsWhatCouldNotBeStored() async throws {
    let world = try await CacheWorld()
    world.disk.fail(.commit, with: RepositoryError(.full))
    _ = try await world.cache.value(for: "a")
    try await world.cache.invalidate("a")
    #expect(await failure { try await world.cache.value(for: "a", policy: .cacheOnly) } as? CacheError == .notCached)
  }

  @Test func aRecordThatDoesNotDecodeIsAMissWithAReportAndIsReplaced() async throws {
    struct Old: Codable, Identifiable { let id: String }
    let backend = InMemoryBackend()
    let old = try await LocalRepository<Old>(backend: backend)
    try await old.save(Old(id: "four"))
    try await old.close()
    let storage = try await LocalRepository<Entry>(backend: backend)
    let cache = Cache(
      storage: storage, freshness: CacheWorld.freshness, source: ScriptedSource { key, _ in .value(key.count) })
    #expect(try await cache.value(for: "four").value == 4)
    #expect(cache.statistics.storageErrors > 0)
    #expect(cache.statistics.lastStorageError == .decodingFailed)
    #expect(try await storage.find(by: "four")?.value == 4)
  }

  @Test func anEntrySurvivesItsOwnCoding() throws {
    let moment = Date(timeIntervalSinceReferenceDate: 812_345_678.123_456_7)
    for content in [CachedEntry<String, Int?>.Content.value(nil), .value(3), .absent(reason: "inland")] {
      let entry = CachedEntry(
        key: "a", content: content, fetchedAt: moment, freshUntil: moment + 1, usableUntil: moment + 2, validator: "v", byteCount: 4,
        noticedInFutureAt: moment - 1)
      let read = try JSONDecoder().decode(CachedEntry<String, Int?>.self, from: JSONEncoder().encode(entry))
      #expect("\(read)" == "\(entry)")
      #expect("\(read.content)" == "\(entry.content)")
      #expect(read.fetchedAt == moment)
    }
  }

  @Test func whatSomebodyElseRemovesFromTheStorageIsGone() async throws {
    let world = try await CacheWorld(eviction: EvictionPolicy(countLimit: 10))
    await world.cache.prefetch((0..<10).map { "key \($0)" })
    for number in 0..<5 { try await world.storage.delete("key \(number)") }
    for number in 0..<5 {
      #expect(await failure { try await world.cache.value(for: "key \(number)", policy: .cacheOnly) } as? CacheError == .notCached)
    }
    #expect(world.cache.state.withLock { $0.entries.count } == 5)
    await world.cache.prefetch((10..<15).map { "key \($0)" })
    #expect(try await world.storage.count() == 10)
    #expect(world.cache.statistics.evictions == [:])
  }

  // MARK: Healing

  private func fill(_ file: URL) async throws {
    let opened = try await Cache.open(jsonFile: file)
    #expect(opened.healing == nil)
    let cache = Cache(
      storage: opened.storage, freshness: CacheWorld.freshness, source: ScriptedSource { key, _ in .value(key.count) })
    _ = try await cache.value(for: "four")
    try await opened.storage.close()
  }

  @Test func aCacheIsThereAfterReopening() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.json")
    try await fill(file)
    let opened = try await Cache.open(jsonFile: file)
    #expect(opened.healing == nil)
    #expect(try await opened.storage.find(by: "four")?.value == 4)
    try await opened.storage.close()
  }

  @Test func aDamagedCacheFileIsMovedAsideAndReported() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.json")
    for _ in 0..<2 {  // the second time the place of the first is taken
      try await fill(file)
      var bytes = try Data(contentsOf: file)
      bytes[bytes.count / 2] ^= 0x01
      try bytes.write(to: file)
      let opened = try await Cache.open(jsonFile: file)
      let healing = try #require(opened.healing)
      #expect(healing.error.code == .corrupted)
      #expect(healing.movedFiles == [file.path + "-damaged"])
      #expect(try Data(contentsOf: URL(fileURLWithPath: file.path + "-damaged")) == bytes)
      #expect(try await opened.storage.count() == 0)
      try await opened.storage.close()
      #expect(try directory.names == ["cache.json", "cache.json-damaged"])
      try FileManager.default.removeItem(at: file)
    }
  }

  @Test func aForeignOrLockedFileIsNotMoved() async throws {
    let directory = try TemporaryDirectory()
    let foreign = directory.file("foreign.json")
    try Data("{\"mine\": true}\n".utf8).write(to: foreign)
    #expect(await code { _ = try await Cache.open(jsonFile: foreign) } == .notOurStore)
    #expect(try directory.names == ["foreign.json"])
    let file = directory.file("cache.json")
    let opened = try await Cache.open(jsonFile: file)
    #expect(await code { _ = try await Cache.open(jsonFile: file) } == .alreadyOpen)
    try await opened.storage.close()
  }

  @Test func aFileThatHasLostItsBeginningIsDamagedAndNotSomebodyElses() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.json")
    let neighbour = directory.file("cache.json-my notes")
    try Data("mine".utf8).write(to: neighbour)
    try await fill(file)
    let whole = try Data(contentsOf: file)
    var flipped = whole
    flipped[1] ^= 0x20
    for damaged in [Data(), Data(count: 4_096), Data(count: 512) + whole.dropFirst(512), Data(whole.prefix(20)), flipped] {
      try damaged.write(to: file)
      let opened = try await Cache.open(jsonFile: file)
      #expect(opened.healing?.error.code == .corrupted)
      try await opened.storage.close()
      #expect(try Data(contentsOf: directory.file("cache.json-damaged")) == damaged)
    }
    #expect(try directory.names == ["cache.json", "cache.json-damaged", "cache.json-my notes"])
  }

  @Test func aFileOfANewerVersionIsRefusedAndNotMoved() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.json")
    try await Cache.open(jsonFile: file).storage.close()
    let text = String(decoding: try Data(contentsOf: file), as: UTF8.self)
    let newer = Data(text.replacing("\"formatVersion\":1,", with: "\"formatVersion\":9,").utf8)
    try newer.write(to: file)
    #expect(await code { _ = try await Cache.open(jsonFile: file) } == .newerSchema)
    #expect(try directory.names == ["cache.json"] && Data(contentsOf: file) == newer)
  }

  @Test func whatIsSoundAtASecondLookIsNotMoved() async throws {
    // Between the first look and the lock another process has healed it.
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.json")
    try await fill(file)
    let looks = Notes()
    let opened = try await Cache.open(file: file) { url in
      looks.add(1)
      guard looks.numbers.count == 1 else { return JSONFileBackend(file: url) }
      let damaged = FaultInjectingBackend(InMemoryBackend())
      damaged.fail(.open, with: RepositoryError(.corrupted))
      return damaged
    }
    #expect(opened.healing == nil)
    #expect(try await opened.storage.find(by: "four")?.value == 4)
    try await opened.storage.close()
    #expect(try directory.names == ["cache.json"])
  }

  @Test func twoWhoHealAtTheSameTimeDoNotMoveEachOthersStore() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.json")
    try await fill(file)
    try Data(contentsOf: file).dropLast(5).write(to: file)
    let opened = await withTaskGroup(of: OpenedCacheStorage<String, Int>?.self) { group in
      for _ in 0..<4 { group.addTask { try? await Cache.open(jsonFile: file) } }
      return await group.reduce(into: [OpenedCacheStorage<String, Int>]()) { if let opened = $1 { $0.append(opened) } }
    }
    #expect(opened.count == 1)
    #expect(try directory.names.filter { $0.hasSuffix("-damaged") }.count == 1)
    for each in opened {
      try await each.storage.save(
        Entry(
          key: "a", content: .value(1), fetchedAt: .now, freshUntil: .now, usableUntil: .now, validator: nil, byteCount: 1,
          noticedInFutureAt: nil))
      try await each.storage.close()
    }
    let again = try await Cache.open(jsonFile: file)
    #expect(try await again.storage.count() == 1)
    try await again.storage.close()
  }

  // MARK: Removing everything

  @Test func aRemovalThatFailsDropsNothing() async throws {
    let world = try await CacheWorld()
    world.disk.fail(.commit, with: RepositoryError(.full))
    world.source.answer("a", .success(.value(7)))
    _ = try await world.cache.value(for: "a")
    world.disk.fail(.commit, with: RepositoryError(.full))
    _ = try await world.cache.value(for: "bb")
    _ = try await world.cache.value(for: "ccc")
    world.disk.fail(.commit, with: RepositoryError(.full))
    #expect(await code { try await world.cache.removeAll() } == .full)
    world.disk.fail(.commit, with: RepositoryError(.full))
    #expect(await code { try await world.cache.removeAll() } == .full)
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).value == 7)
    #expect(try await world.cache.value(for: "bb", policy: .cacheOnly).value == 2)
    #expect(try await world.cache.value(for: "ccc", policy: .cacheOnly).value == 3)
    try await world.cache.removeAll()
    for key in ["a", "bb", "ccc"] {
      #expect(await failure { try await world.cache.value(for: key, policy: .cacheOnly) } as? CacheError == .notCached)
    }
  }

  @Test func aCacheThatHasFilledTheDiskCanBeCleared() async throws {
    let world = try await CacheWorld()
    for key in ["a", "bb"] { _ = try await world.cache.value(for: key) }
    world.disk.fail(.commit, with: RepositoryError(.full))
    _ = try await world.cache.value(for: "ccc")
    try await world.cache.removeAll()
    #expect(try await world.storage.count() == 0)
    // What comes meanwhile and is refused does not take the deletion with it.
    _ = try await world.cache.value(for: "a")
    world.disk.hold(.commit)
    let first = Task { try await world.cache.value(for: "bb", policy: .networkOnly).value }
    await world.disk.waitUntilHeld(.commit)
    let removal = Task { try await world.cache.removeAll() }
    let second = Task { try await world.cache.value(for: "ccc", policy: .networkOnly).value }
    try await until { world.storage.core.waitingWriteCount == 2 }
    world.disk.release(.commit)
    _ = try await (first.value, second.value)
    try await removal.value
    #expect(world.disk.batches.count >= 4)
    #expect(world.disk.batches.allSatisfy { batch in Set(batch.records.map { $0.value == nil }).count == 1 })
  }

  @Test func aCacheKeepsNoTombstones() async throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("cache.json")
    for _ in 0..<2 {
      let opened = try await Cache.open(jsonFile: file)
      let cache = Cache(
        storage: opened.storage, freshness: CacheWorld.freshness, eviction: EvictionPolicy(countLimit: 10),
        source: ScriptedSource { key, _ in .value(key.count) })
      for number in 0..<300 { _ = try await cache.value(for: "key \(number)") }
      #expect(await opened.storage.core.verify().recordCount == 10)
      try await opened.storage.close()
      #expect(try Data(contentsOf: file).count < 10_000)
    }
    #expect(String(decoding: try Data(contentsOf: file), as: UTF8.self).split(separator: "\n").count < 20)
  }
}
