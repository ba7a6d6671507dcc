/// A random number generator that repeats itself: equal seeds give equal numbers, on every machine and in every version.
///
/// Print the seed of a random test, so that a failure can be repeated:
///
/// ```swift
/// let seed = UInt64.random(in: .min ... .max)
/// print("seed \(seed)")
/// var generator = SeededGenerator(seed: seed)
/// let rating = Int.random(in: 1...5, using: &generator)
/// ```
///
/// The numbers are those of SplitMix64 (Steele, Lea and Flood, 2014): good for tests, not for secrets. Cost: two multiplications a
/// number.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Starts from a seed; every seed is as good as another.
  public init(seed: UInt64) { state = seed }

  /// Returns the next number.
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
