/// Random number generator with a seed, which gives equal numbers for equal seeds on every machine and in every version of Larder.
///
/// Print the seed of a random test, so that you can repeat a failure:
///
/// ```swift
/// let seed = UInt64.random(in: .min ... .max)
/// print("seed \(seed)")
/// var generator = SeededGenerator(seed: seed)
/// let rating = Int.random(in: 1...5, using: &generator)
/// ```
///
/// The generator is SplitMix64 (Steele, Lea and Flood, 2014). Use `SeededGenerator` for tests, and never for secrets. Cost: two
/// multiplications for each number.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Makes a generator from a seed, which may be any number.
  public init(seed: UInt64) { state = seed }

  /// Returns the next random number.
  public mutating func next() -> UInt64 {
    // The constants are from the SplitMix64 paper. With other constants, a seed that a test has printed would not repeat the test's
    // failure.
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
