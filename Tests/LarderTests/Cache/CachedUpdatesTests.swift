import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct CachedUpdatesTests {
  @Test func firstComesWhatIsThereThenEachChangeOfTheValue() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    let updates = CachedReader(world.cache, "a")
    #expect(await updates.next()?.value == 1)
    world.source.answer("a", .success(.value(7)), .success(.value(8)))
    for expected in [7, 8] {
      async let next = updates.next()
      _ = try await world.cache.value(for: "a", policy: .networkOnly)
      #expect(await next?.value == expected)
    }
  }

  @Test func nothingComesBeforeThereIsSomething() async throws {
    let world = try await CacheWorld()
    let updates = world.cache.updates(for: "four")
    let task = Task {
      var iterator = updates.makeAsyncIterator()
      return await iterator.next()?.value
    }
    try await until { world.cache.announcements.count == 1 }
    _ = try await world.cache.value(for: "other")
    _ = try await world.cache.value(for: "four")
    #expect(await task.value == 4)
    #expect(world.source.callCount == 2)  // reading has fetched nothing
  }

  @Test func aValueThatBecomesOldIsToldWhenItHappens() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    let updates = CachedReader(world.cache, "a")
    #expect(await updates.next()?.state == .fresh)
    async let stale = updates.next()
    await world.clock.waitForSleepers()
    world.clock.advance(by: .seconds(3599))
    #expect(world.clock.sleeperCount == 1)
    world.clock.advance(by: .seconds(1))
    let told = await stale
    #expect(told?.state == .stale)
    #expect(told?.age == .seconds(3600))
    async let expired = updates.next()
    await world.clock.waitForSleepers()
    world.clock.advance(by: .hours(47))
    #expect(await expired?.state == .expired)
    // A refresh makes it fresh again.
    async let fresh = updates.next()
    _ = try await world.cache.value(for: "a", policy: .networkOnly)
    #expect(await fresh?.state == .fresh)
  }

  @Test func aReaderWhoComesAfterAValueHasExpiredWaitsForTheNext() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    world.clock.advance(by: .hours(49))
    let updates = CachedReader(world.cache, "a")
    async let next = updates.next()
    world.source.answer("a", .success(.value(7)))
    _ = try await world.cache.value(for: "a")
    let told = await next
    #expect(told?.value == 7 && told?.state == .fresh)
  }

  @Test func aSlowReaderGetsTheNewestOnly() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    let updates = CachedReader(world.cache, "a")
    _ = await updates.next()
    for number in 0..<100 {
      world.source.answer("a", .success(.value(number)))
      _ = try await world.cache.value(for: "a", policy: .networkOnly)
    }
    #expect(await updates.next()?.value == 99)
  }

  @Test func aValueThatIsRemovedAndComesAgainIsTold() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    let updates = CachedReader(world.cache, "a")
    _ = await updates.next()
    async let next = updates.next()
    try await world.cache.invalidate("a")
    _ = try await world.cache.value(for: "a")
    #expect(await next?.value == 1)
  }

  @Test func whatCouldNotBeStoredIsToldToo() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    let updates = CachedReader(world.cache, "a")
    _ = await updates.next()
    async let next = updates.next()
    world.disk.fail(.commit, with: RepositoryError(.full))
    world.source.answer("a", .success(.value(7)))
    _ = try await world.cache.value(for: "a", policy: .networkOnly)
    #expect(await next?.value == 7)
  }

  @Test func aReaderThatBeganWithAnUnstoredValueIsToldOfTheNext() async throws {
    let world = try await CacheWorld()
    world.disk.fail(.commit, with: RepositoryError(.full))
    _ = try await world.cache.value(for: "a")
    let updates = CachedReader(world.cache, "a")
    #expect(await updates.next()?.value == 1)
    async let next = updates.next()
    world.disk.fail(.commit, with: RepositoryError(.full))
    world.source.answer("a", .success(.value(7)))
    _ = try await world.cache.value(for: "a", policy: .networkOnly)
    #expect(await next?.value == 7)
    // The first one that is stored.
    async let stored = updates.next()
    world.source.answer("a", .success(.value(8)))
    _ = try await world.cache.value(for: "a", policy: .networkOnly)
    #expect(await stored?.value == 8)
  }

  @Test func aCancelledReaderEndsAndIsForgotten() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    let updates = world.cache.updates(for: "a")
    let task = Task {
      for await _ in updates {}
      return true
    }
    await world.clock.waitForSleepers()
    task.cancel()
    #expect(await task.value)
    try await until { world.clock.sleeperCount == 0 }
    try await until { world.cache.announcements.count == 0 }
  }

  @Test func readersEndWhenTheStorageIsClosed() async throws {
    let world = try await CacheWorld()
    _ = try await world.cache.value(for: "a")
    let updates = CachedReader(world.cache, "a")
    _ = await updates.next()
    async let next = updates.next()
    await world.clock.waitForSleepers()
    try await world.storage.close()
    #expect(await next == nil)
  }

  @Test func aReaderThatWentAwayKeepsNothingAlive() async throws {
    weak var cache: Cache?
    do {
      let world = try await CacheWorld()
      cache = world.cache
      _ = try await world.cache.value(for: "a")
      let updates = CachedReader(world.cache, "a")
      _ = await updates.next()
      try await world.settle()
    }
    try await until { cache == nil }
  }

  // MARK: Many readers

  @Test func oneCommitWakesTheReadersOfItsKeysOnly() async throws {
    let world = try await CacheWorld()
    let keys = (0..<500).map { "key \($0)" }
    await world.cache.prefetch(keys)
    let readers = keys.map { CachedReader(world.cache, $0) }
    for reader in readers { _ = await reader.next() }
    // One seat at the hub, and under each key one reader.
    #expect(world.cache.announcements.count == 500)
    let looks = world.cache.announcements.wokenCount
    for _ in 0..<10 { _ = try await world.cache.value(for: "key 7", policy: .networkOnly) }
    // A commit is announced behind the answer to whoever made it.
    try await until { world.cache.announcements.wokenCount - looks >= 10 }
    #expect(world.cache.announcements.wokenCount - looks == 10)
    withExtendedLifetime(readers) {}
  }

  /// Eight times the readers take about eight times as long, and not 64 times: in processor time, which other programs do not change.
  @Test func theCostOfAReaderDoesNotDependOnHowManyThereAre() async throws {
    let world = try await CacheWorld()
    func seconds(_ count: Int) -> Double {
      let start = processorTime()
      var readers: [CachedReader<String, Int>] = []
      for number in 0..<count { readers.append(CachedReader(world.cache, number % 2 == 0 ? "same" : "key \(number)")) }
      #expect(world.cache.announcements.count == count)
      readers.removeAll()
      return processorTime() - start
    }
    _ = seconds(2_000)
    let small = min(seconds(2_000), seconds(2_000))
    let large = min(seconds(16_000), seconds(16_000))
    print("readers: 2,000 in \(small) s, 16,000 in \(large) s")
    #expect(large < small * 24)
    #expect(world.cache.announcements.count == 0)
  }

  private func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }
}
