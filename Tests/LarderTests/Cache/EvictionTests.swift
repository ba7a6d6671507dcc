import Foundation
import LarderTesting
import Synchronization
import Testing

@testable import Larder

@Suite(.timeLimit(.minutes(15)))
struct EvictionTests {
  private func keys(_ world: CacheWorld) async throws -> Set<String> { Set(try await world.storage.loadAll().map(\.key)) }

  @Test func noMoreEntriesAreKeptThanTheLimitOnDiskToo() async throws {
    let world = try await CacheWorld(eviction: EvictionPolicy(countLimit: 10))
    for number in 0..<50 {
      _ = try await world.cache.value(for: "key \(number)")
      #expect(try await world.storage.count() == min(number + 1, 10))
    }
    #expect(world.cache.statistics.evictions == [.count: 40])
    // Each went in the commit that brought the next: no commit shows more.
    #expect(world.disk.calls(.commit) == 50)
    #expect(try await world.cache.value(for: "key 49", policy: .cacheOnly).value == 6)
    #expect(await failure { try await world.cache.value(for: "key 0", policy: .cacheOnly) } as? CacheError == .notCached)
  }

  @Test func noMoreBytesAreKeptThanTheLimit() async throws {
    let world = try await CacheWorld(
      eviction: EvictionPolicy(byteLimit: 30), source: ScriptedSource { key, _ in .value(key.count == 1 ? 1 : 123_456_789_0) })
    for number in 0..<20 {
      _ = try await world.cache.value(for: "key \(number)")  // ten bytes each
      let bytes = try await world.storage.loadAll().reduce(0) { $0 + $1.byteCount }
      #expect(bytes <= 30)
    }
    #expect(try await world.storage.count() == 3)
    #expect(world.cache.statistics.evictions == [.bytes: 17])
    for key in ["a", "b"] { _ = try await world.cache.value(for: key) }
    #expect(try await world.storage.count() == 4)  // two times ten bytes and two times one
  }

  @Test func answersThatThereIsNoneCountAgainstTheLimitOfBytes() async throws {
    let world = try await CacheWorld(
      eviction: EvictionPolicy(byteLimit: 1_000), source: ScriptedSource { _, _ in .absent(reason: "sea", lifetime: .hours(1)) })
    for number in 0..<100 {
      let error = await failure { try await world.cache.value(for: "key \(number)") }
      #expect(error is CacheError)
    }
    #expect(try await world.storage.count() == 7)  // 131 bytes each
  }

  @Test func aValueLargerThanTheLimitIsServedAndNotStored() async throws {
    let world = try await CacheWorld(
      eviction: EvictionPolicy(byteLimit: 5), source: ScriptedSource { key, _ in .value(key == "large" ? 1_234_567 : 1) })
    _ = try await world.cache.value(for: "a")
    #expect(try await world.cache.value(for: "large").value == 1_234_567)
    #expect(try await keys(world) == ["a"])
    #expect(world.cache.statistics.evictions == [.bytes: 1])
    #expect(world.cache.statistics.storageErrors == 0)
  }

  @Test func whatWasUsedStaysLongerThanWhatWasNot() async throws {
    let world = try await CacheWorld(eviction: EvictionPolicy(countLimit: 10))
    for number in 0..<10 { _ = try await world.cache.value(for: "key \(number)") }
    for number in [0, 3] { _ = try await world.cache.value(for: "key \(number)") }
    for number in 10..<18 { _ = try await world.cache.value(for: "key \(number)") }
    let keys = try await keys(world)
    #expect(keys.isSuperset(of: ["key 0", "key 3"]))
    #expect(keys.count == 10)
  }

  @Test func aRefreshOfAnEntryEvictsNothing() async throws {
    let world = try await CacheWorld(eviction: EvictionPolicy(countLimit: 2))
    _ = try await world.cache.value(for: "a")
    _ = try await world.cache.value(for: "b")
    for _ in 0..<5 { _ = try await world.cache.value(for: "a", policy: .networkOnly) }
    #expect(try await keys(world) == ["a", "b"])
    #expect(world.cache.statistics.evictions == [:])
  }

  @Test func whatIsExpiredGoesFirst() async throws {
    let world = try await CacheWorld(eviction: EvictionPolicy(countLimit: 4))
    for key in ["a", "b"] { _ = try await world.cache.value(for: key) }
    world.clock.advance(by: .hours(48))
    for key in ["c", "d", "e"] { _ = try await world.cache.value(for: key) }
    #expect(try await keys(world) == ["c", "d", "e"])
    #expect(world.cache.statistics.evictions == [.expired: 2])
  }

  @Test func aSmallerLimitAtTheNextStartTakesEffectWithTheNextEntry() async throws {
    let world = try await CacheWorld()
    for number in 0..<20 {
      _ = try await world.cache.value(for: "key \(number)")
      world.clock.advance(by: .seconds(1))
    }
    let next = world.restarted(eviction: EvictionPolicy(countLimit: 5))
    _ = try await next.value(for: "new")
    #expect(try await keys(world) == ["key 16", "key 17", "key 18", "key 19", "new"])
  }

  @Test func invalidatedEntriesMakeRoom() async throws {
    let world = try await CacheWorld(eviction: EvictionPolicy(countLimit: 2))
    for key in ["a", "b"] { _ = try await world.cache.value(for: key) }
    try await world.cache.invalidate("a")
    _ = try await world.cache.value(for: "c")
    #expect(try await keys(world) == ["b", "c"])
    try await world.cache.removeAll()
    for key in ["d", "e"] { _ = try await world.cache.value(for: key) }
    #expect(try await keys(world) == ["d", "e"])
    #expect(world.cache.statistics.evictions == [:])
  }

  @Test func anEvictionThatCouldNotBeStoredIsMadeUpFor() async throws {
    let world = try await CacheWorld(eviction: EvictionPolicy(countLimit: 2))
    for key in ["a", "b"] { _ = try await world.cache.value(for: key) }
    for call in 1...3 { world.disk.fail(.commit, call: call, with: RepositoryError(.full)) }
    for key in ["c", "e", "f"] { _ = try await world.cache.value(for: key) }
    #expect(try await keys(world) == ["a", "b"])
    #expect(world.cache.statistics.evictions == [:])
    _ = try await world.cache.value(for: "d")
    #expect(try await keys(world).count == 2)
    #expect(try await keys(world).contains("d"))
  }

  @Test func anInvalidationThatFailsLeavesTheEntryAndItsPlace() async throws {
    let world = try await CacheWorld(eviction: EvictionPolicy(countLimit: 2))
    for key in ["a", "b"] { _ = try await world.cache.value(for: key) }
    world.disk.fail(.commit, with: RepositoryError(.full))
    #expect(await code { try await world.cache.invalidate("a") } == .full)
    #expect(try await world.cache.value(for: "a", policy: .cacheOnly).value == 1)
    _ = try await world.cache.value(for: "c")
    #expect(try await world.storage.count() == 2)
  }

  @Test func underMemoryPressureExpiredEntriesGoAndThenHalfOfTheRest() async throws {
    for eviction in [EvictionPolicy.none, EvictionPolicy(countLimit: 100)] {
      let world = try await CacheWorld(eviction: eviction)
      for number in 0..<4 { _ = try await world.cache.value(for: "old \(number)") }
      world.clock.advance(by: .hours(48))
      for number in 0..<10 { _ = try await world.cache.value(for: "new \(number)") }
      await world.cache.relieve(.warning)
      #expect(try await keys(world).count == 10)
      await world.cache.relieve(.critical)
      #expect(try await keys(world).count == 5)
      #expect(world.cache.statistics.evictions == [.expired: 4, .memoryPressure: 5])
    }
  }

  @Test func theOrderNeverLosesOrInventsAKey() throws {
    for seed in Seeds.list(20, for: #function) {
      var random = SeededGenerator(seed)
      var order = EvictionOrder<Int>()
      var model: Set<Int> = []
      for _ in 0..<2_000 {
        let key = random.int(0..<40)
        switch random.int(0..<10) {
        case 0..<4:
          order.insert(key)
          model.insert(key)
        case 4..<7: order.touch(key)
        case 7:
          order.remove(key)
          model.remove(key)
        default:
          let victim = order.evict()
          #expect((victim == nil) == model.isEmpty)
          if let victim { #expect(model.remove(victim) != nil) }
        }
        #expect(order.count == model.count)
      }
      while let victim = order.evict() { #expect(model.remove(victim) != nil) }
      #expect(model.isEmpty, "LARDER_SEED=\(seed)")
    }
  }

  // MARK: What is expired

  /// 60 are expired, and none of them is looked for by chance: each that comes takes the place of one of them.
  @Test func everythingExpiredGoesBeforeAnythingFresh() async throws {
    let world = try await CacheWorld(eviction: EvictionPolicy(countLimit: 100))
    for number in 0..<60 { _ = try await world.cache.value(for: "old \(number)") }
    for number in 0..<60 { _ = try await world.cache.value(for: "old \(number)") }  // used, so it is worth more
    world.clock.advance(by: .hours(47))
    for number in 0..<40 { _ = try await world.cache.value(for: "fresh \(number)") }
    world.clock.advance(by: .hours(1))
    for number in 0..<16 { _ = try await world.cache.value(for: "new \(number)") }
    let keys = try await keys(world)
    #expect(keys.filter { $0.hasPrefix("fresh") }.count == 40 && keys.filter { $0.hasPrefix("new") }.count == 16)
    #expect(keys.filter { $0.hasPrefix("old") }.isEmpty)
    #expect(world.cache.statistics.evictions == [.expired: 60])
  }

  @Test func aClockThatIsAheadAtOneStartEvictsNoMoreThanItMust() async throws {
    let world = try await CacheWorld()
    for number in 0..<100 { _ = try await world.cache.value(for: "key \(number)") }
    let ahead = ManualClock(now: world.clock.now + 365 * 86_400)
    let wrong = world.restarted(eviction: EvictionPolicy(countLimit: 100), clock: ahead)
    _ = try await wrong.value(for: "new")
    #expect(wrong.statistics.evictions == [.count: 1])
    await wrong.relieve(.warning)
    #expect(wrong.statistics.evictions == [.count: 1])
    let right = world.restarted(eviction: EvictionPolicy(countLimit: 100))
    var served = 0
    for number in 0..<100 where await failure({ try await right.value(for: "key \(number)", policy: .cacheOnly) }) == nil { served += 1 }
    #expect(served == 99)
  }

  @Test func whatIsExpiredByTwoReadingsOfTheClockGoes() async throws {
    let world = try await CacheWorld()
    for number in 0..<10 { _ = try await world.cache.value(for: "old \(number)") }
    // Another run, three days later, has fetched something.
    let second = world.restarted(clock: ManualClock(now: world.clock.now + 3 * 86_400))
    for number in 0..<5 { _ = try await second.value(for: "newer \(number)") }
    let third = world.restarted(eviction: EvictionPolicy(countLimit: 15), clock: ManualClock(now: world.clock.now + 3 * 86_400 + 60))
    await third.relieve(.warning)
    #expect(third.statistics.evictions == [.expired: 10])
    #expect(try await world.storage.count() == 5)
  }

  @Test func whatHasExpiredInThisProcessGoesWhateverTheClockHasSaid() async throws {
    let world = try await CacheWorld()
    for number in 0..<10 { _ = try await world.cache.value(for: "key \(number)") }
    let clock = ManualClock(now: world.clock.now + 365 * 86_400)
    let next = world.restarted(eviction: EvictionPolicy(countLimit: 10), clock: clock)
    await next.relieve(.warning)
    #expect(next.statistics.evictions == [:])
    clock.advance(by: .hours(48))
    await next.relieve(.warning)
    #expect(next.statistics.evictions == [.expired: 10])
  }

  @Test func theQueueOfExpiryGivesTheEarliestFirst() throws {
    for seed in Seeds.list(20, for: #function) {
      var random = SeededGenerator(seed)
      var queue = KeyQueue<Int>()
      var model: [Int: Duration] = [:]
      for number in 0..<1_000 {
        switch random.int(0..<10) {
        case 0..<6:
          let moment = Duration.seconds(random.int(0..<500))
          queue.insert(number, at: moment)
          model[number] = moment
        case 6:
          for key in model.keys where key % 7 == 0 {
            let wasThere = queue.remove(key)
            #expect(wasThere)
          }
          model = model.filter { $0.key % 7 != 0 }
        default:
          let now = Duration.seconds(random.int(0..<500))
          let first = queue.popFirst(by: now)
          let due = model.values.min().flatMap { $0 <= now ? $0 : nil }
          #expect((first == nil) == (due == nil), "LARDER_SEED=\(seed)")
          if let first { #expect(model.removeValue(forKey: first) == due) }
        }
        #expect(queue.count == model.count)
      }
    }
  }

  // MARK: Storage that fails

  @Test func theLimitsHoldInMemoryWhileStorageFails() async throws {
    let world = try await CacheWorld(
      eviction: EvictionPolicy(countLimit: 50, byteLimit: 100),
      source: ScriptedSource { key, _ in .value(key.hasPrefix("large") ? .max : 1_234_567_890) })
    try await world.storage.close()
    for number in 0..<30 { _ = try await world.cache.value(for: "key \(number)") }
    #expect(world.cache.state.withLock { $0.unsaved.byteCount } == 100)
    var kept = 0
    for number in 0..<30 where await failure({ try await world.cache.value(for: "key \(number)", policy: .cacheOnly) }) == nil { kept += 1 }
    #expect(kept == 10)
    let few = try await CacheWorld(eviction: EvictionPolicy(countLimit: 3, byteLimit: 10))
    few.source.answer("large", .success(.value(123_456_789_012)))
    try await few.storage.close()
    for key in ["a", "b", "c", "d", "large"] { _ = try await few.cache.value(for: key) }
    #expect(few.cache.state.withLock { $0.unsaved.byteCount } == 3)
    #expect(few.cache.statistics.evictions == [:])
  }
}
