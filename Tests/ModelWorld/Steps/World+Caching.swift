internal import Foundation
internal import Larder
internal import TestSupport

/// The cache, its source and its clock.
extension World {
  private var anyKey: Int { random.int(CacheModel.keys) }

  func readCached() async throws {
    let key = anyKey
    let policies: [FetchPolicy] = [.cacheFirst, .cacheFirst, .cacheOnly, .networkOnly, .staleWhileRevalidate]
    var policy = policies[random.int(0..<policies.count)]
    let isStale = cacheModel.entries[key]?.state(at: clock.uptime) == .stale
    // A refresh that fails behind an answer may begin again later, at a moment that nobody decides.
    if policy == .staleWhileRevalidate, isStale, source[key] == .fails { policy = .cacheFirst }
    try await compareAnswer(key, policy)
    // The refresh behind the answer is joined, so that it is over.
    if policy == .staleWhileRevalidate, isStale { try await compareAnswer(key, .networkOnly) }
  }

  func compareAnswer(_ key: Int, _ policy: FetchPolicy) async throws {
    let before = cacheModel.entries[key]
    let wanted = cacheModel.answer(key, policy, source[key], now: clock.now, uptime: clock.uptime)
    var found = CacheModel.Answer.notCached
    do {
      let cached = try await cache.value(for: key, policy: policy)
      found = .value(cached.value, cached.state, isRemote: cached.origin == .remote, isFallback: cached.refreshError != nil)
      let age = cacheModel.entries[key]?.age(at: clock.uptime) ?? .zero
      let isRight = abs((cached.age - age) / .milliseconds(1)) < 1
      try expect(isRight || found != wanted, "the age of \(key) is \(cached.age), not \(age)")
    } catch let error as CacheError {
      if case .absent = error { found = .absent }
    } catch is FakeSource.Trouble {
      found = .trouble
    }
    let what = "\(policy) of \(key), before \(String(describing: before)), at \(clock.now) and \(clock.uptime)"
    try expect(found == wanted, "\(what): the cache gives \(found), not \(wanted)")
  }

  func invalidate() async throws {
    let key = anyKey
    if mistake != .servesInvalidated { try await cache.invalidate(key) }
    cacheModel.entries[key] = nil
    try await compareAnswer(key, .cacheOnly)
  }

  func emptyCache() async throws {
    try await cache.removeAll()
    cacheModel.entries = [:]
  }

  func changeRemote() {
    source[anyKey] = random.chance(60) ? .value(random.int(0..<1_000)) : random.chance(50) ? .absent : .fails
  }

  func passTime() {
    clock.advance(by: .seconds(random.chance(2) ? 31_536_000 : random.int(1..<1_200)))
  }

  /// Sets the wall clock ahead or back, by a minute up to a year; no time passes.
  func setClock() {
    let most = [120, 4_000, 100_000, 31_536_000][random.int(0..<4)]
    let seconds = TimeInterval(random.int(60..<most))
    clock.setWall(by: random.chance(50) ? seconds : -seconds)
  }

  func reopenCache() async throws {
    try await cache.close()
    cache = try await site.openCache(clock, source)
    cacheModel.past = cacheModel.entries.mapValues { [$0] }
    try await adoptCache()
  }

  /// Brings the model to what a new cache finds by the wall clock, and removes what comes from the future: when that is noted is open.
  func adoptCache() async throws {
    for (key, entry) in cacheModel.entries { cacheModel.entries[key] = entry.found(at: clock.now, uptime: clock.uptime) }
    // One that is a few seconds ahead, as another process may be, is of no age from its first lookup on: from now.
    for (key, entry) in cacheModel.entries where entry.fetchedAt > clock.now {
      try await compareAnswer(key, .cacheOnly)
      guard entry.isFromTheFuture(at: clock.now) else { continue }
      try await cache.invalidate(key)
      cacheModel.entries[key] = nil
    }
  }

  /// Takes over what a crash has left of the cache, whose writes are buffered: of each key an entry that it has had, or none.
  func adoptCacheAfterCrash() async throws {
    let snapshot = cache.storage.snapshot
    var entries: [Int: CacheModel.Entry] = [:]
    for key in CacheModel.keys {
      guard let stored = try snapshot.find(by: key) else { continue }
      let known = cacheModel.past[key]?.last { $0.fetchedAt == stored.fetchedAt && $0.value == stored.value }
      guard let known else { throw Difference("after a crash the cache has an entry of \(key) that was never stored: \(stored)") }
      entries[key] = known
      if stored.noticedInFutureAt != nil {
        try await cache.invalidate(key)
        entries[key] = nil
      }
    }
    cacheModel.entries = entries
    try await adoptCache()
  }
}
