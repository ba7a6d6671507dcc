import Foundation
@_exported import LarderTesting

extension SeededGenerator {
  package init(_ seed: UInt64) { self.init(seed: seed) }

  package mutating func int(_ range: Range<Int>) -> Int { Int.random(in: range, using: &self) }
  package mutating func chance(_ percent: Int) -> Bool { int(0..<100) < percent }
}

/// The seeds of a random test: those that follow from a fresh one, or the one in `LARDER_SEED` alone.
package enum Seeds {
  package static func list(_ count: Int, for test: String) -> [UInt64] {
    if let text = ProcessInfo.processInfo.environment["LARDER_SEED"], let seed = UInt64(text) { return [seed] }
    var generator = SeededGenerator(UInt64.random(in: .min ... .max))
    let seeds = (0..<count).map { _ in generator.next() }
    print("\(test): \(count) seeds, the first is LARDER_SEED=\(seeds.first ?? 0)")
    return seeds
  }
}
