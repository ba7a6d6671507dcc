import Foundation
import Testing

@testable import Larder

/// Which order of eviction finds most of what is asked for; see `Docs/Design/0006-eviction-order.md`.
@Suite(.timeLimit(.minutes(Torture.isOn ? 60 : 15)))
struct EvictionComparisonTests {
  private enum Pattern: String, CaseIterable {
    case zipf = "zipf"
    case zipfWithScans = "zipf with scans"
    case shiftingSet = "shifting working set"
    case loop = "loop"
  }

  private static let keys = 10_000
  private static let capacity = 500
  private static let requests = Torture.count(25_000, full: 100_000)

  @Test func theOrderKeptFindsMostOverAllPatterns() throws {
    let seed = try #require(Seeds.list(1, for: #function).first)
    var sums: [String: Double] = [:]
    for pattern in Pattern.allCases {
      let trace = Self.trace(pattern, seed)
      let ratios = [
        ("kept", Self.hitRatio(KeptOrder.self, trace)), ("SIEVE", Self.hitRatio(SieveOrder.self, trace)),
        ("S3-FIFO as published", Self.hitRatio(PlainS3FIFOOrder.self, trace)), ("LRU", Self.hitRatio(LRUOrder.self, trace)),
      ]
      print("eviction, \(pattern.rawValue): " + ratios.map { "\($0.0) \(String(format: "%.3f", $0.1))" }.joined(separator: ", "))
      for (name, ratio) in ratios { sums[name, default: 0] += ratio }
      guard let kept = ratios.first?.1, let lru = ratios.last?.1 else { continue }
      // A scan drives out only a part of what is asked for again.
      if pattern == .zipf || pattern == .zipfWithScans { #expect(kept > lru + 0.05) }
      if pattern == .shiftingSet { #expect(kept > lru - 0.05) }
    }
    let kept = try #require(sums["kept"])
    // Against the published form it gives up some of a loop, for sparing what was used once.
    for (name, sum) in sums { #expect(kept >= sum - (name.hasSuffix("published") ? 0.08 : 0), "\(name), LARDER_SEED=\(seed)") }
  }

  private static func hitRatio<Order: EvictionRival>(_ order: Order.Type, _ trace: [Int]) -> Double {
    var order = Order(capacity: capacity)
    var hits = 0
    for (index, key) in trace.enumerated() {
      let isHit = order.use(key)
      if isHit, index >= trace.count / 10 { hits += 1 }  // not counting how it fills up
    }
    return Double(hits) / Double(trace.count - trace.count / 10)
  }

  private static func trace(_ pattern: Pattern, _ seed: UInt64) -> [Int] {
    var random = SeededGenerator(seed)
    var sums: [Double] = []
    var sum = 0.0
    for rank in 1...keys {
      sum += 1 / pow(Double(rank), 0.9)
      sums.append(sum)
    }
    func zipf() -> Int {
      let wanted = Double.random(in: 0..<sum, using: &random)
      var (low, high) = (0, sums.count - 1)
      while low < high {
        let middle = (low + high) / 2
        if sums[middle] <= wanted { low = middle + 1 } else { high = middle }
      }
      return low
    }
    var next = keys
    switch pattern {
    case .zipf: return (0..<requests).map { _ in zipf() }
    case .zipfWithScans:
      // Every 4,000 requests somebody lists 1,000 things that nobody asks for again.
      return (0..<requests).map { index in
        guard index % 5_000 >= 4_000 else { return zipf() }
        next += 1
        return next
      }
    case .loop:
      // A tenth more than there is room for, again and again.
      return (0..<requests).map { $0 % (capacity + capacity / 10) }
    case .shiftingSet:
      // What is popular moves on: every 40 requests one thing becomes old and another new.
      return (0..<requests).map { index in index / 40 + zipf() % 1_000 }
    }
  }
}
