import Foundation

/// The medians of some contenders that take turns, in microseconds, so that a slow moment of the machine meets all of them.
///
/// - Parameter turn: How often one runs before it is the next one's turn. With more than one, each finds the processor's caches as it left
///   them, which a library that is faster than a cache miss needs to be compared by.
func medians(
  rounds: Int, warmUp: Int = 50, turn: Int = 1, _ contenders: [(Int) async throws -> Void]
) async throws -> [Double] {
  var times = contenders.map { _ in [Double]() }
  for round in 0..<(warmUp + rounds) {
    for (index, contender) in contenders.enumerated() {
      for time in 0..<turn {
        let time = try await clock.measure { try await contender(round * turn + time) }.microseconds
        if round >= warmUp { times[index].append(time) }
      }
    }
  }
  return times.map(median)
}

/// The load of the machine over the last minute: with a load above 2 on two cores a figure is a guess.
func loadAverage() -> String {
  var loads = [Double](repeating: 0, count: 3)
  return getloadavg(&loads, 3) > 0 ? text(loads[0]) : "unknown"
}

/// The same numbers in every run.
struct Numbers: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
