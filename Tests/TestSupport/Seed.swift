import Foundation

/// Random numbers that a seed repeats: SplitMix64.
package struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  package init(_ seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

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
