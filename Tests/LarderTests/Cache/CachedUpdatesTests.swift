import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(10)))
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
    try await until { world.cache.state.withLock { $0.readers["four"]?.count == 1 } }
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
    try await until { world.cache.state.withLock { $0.readers.isEmpty } }
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
}
