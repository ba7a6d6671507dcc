internal import Foundation
internal import Larder

/// The values that a cache should hold, by the rules of its documentation.
struct CacheModel {
  static let freshness = FreshnessPolicy(fresh: .seconds(600), usable: .seconds(3_600), negative: .seconds(60), jitter: 0)
  static let keys = 0..<10

  struct Entry {
    /// The value, or `nil` for "there is none".
    let value: Int?
    let fetchedAt: Date
    /// The age at a moment of the monotonic clock.
    var age: Duration = .zero
    var uptime: Duration

    private var fresh: Duration { value == nil ? CacheModel.freshness.negative : CacheModel.freshness.fresh }
    private var usable: Duration { value == nil ? CacheModel.freshness.negative : CacheModel.freshness.usable }

    func age(at uptime: Duration) -> Duration { age + uptime - self.uptime }

    func state(at uptime: Duration) -> Cached<Int>.State {
      let age = age(at: uptime)
      return age < fresh ? .fresh : age < usable ? .stale : .expired
    }

    /// Whether it comes from the future: its fresh window is over, and it ages from its arrival on.
    func isFromTheFuture(at now: Date) -> Bool { now.timeIntervalSince(fetchedAt) <= -5 }

    /// Returns the entry as another cache finds it, by the wall clock.
    func found(at now: Date, uptime: Duration) -> Entry {
      let age = now.timeIntervalSince(fetchedAt)
      return Entry(
        value: value, fetchedAt: fetchedAt, age: isFromTheFuture(at: now) ? fresh : .seconds(max(age, 0)), uptime: uptime)
    }
  }

  var entries: [Int: Entry] = [:]
  /// Every entry that was stored of a key since the last time that no crash can take back.
  var past: [Int: [Entry]] = [:]

  mutating func store(_ entry: Entry?, for key: Int) {
    entries[key] = entry
    if let entry { past[key, default: []].append(entry) }
  }

  /// The answer to a question of the cache.
  enum Answer: Equatable {
    case value(Int, Cached<Int>.State, isRemote: Bool, isFallback: Bool)
    case absent, notCached, trouble
  }

  /// Returns the answer that should come, and notes what should be stored.
  mutating func answer(_ key: Int, _ policy: FetchPolicy, _ remote: FakeSource.Answer, now: Date, uptime: Duration) -> Answer {
    let entry = entries[key]
    let state = entry?.state(at: uptime)
    if policy != .networkOnly, let entry, let state {
      switch (entry.value, state) {
      case (nil, .fresh): return .absent
      case (let value?, .fresh): return .value(value, state, isRemote: false, isFallback: false)
      case (let value?, .stale) where policy != .cacheFirst: return .value(value, state, isRemote: false, isFallback: false)
      default: break
      }
    }
    if policy == .cacheOnly { return .notCached }
    switch remote {
    case .value(let value):
      store(Entry(value: value, fetchedAt: now, uptime: uptime), for: key)
      return .value(value, .fresh, isRemote: true, isFallback: false)
    case .absent:
      store(Entry(value: nil, fetchedAt: now, uptime: uptime), for: key)
      return .absent
    case .fails:
      guard policy != .networkOnly, let value = entry?.value, let state, state != .expired else { return .trouble }
      return .value(value, state, isRemote: false, isFallback: true)
    }
  }
}
