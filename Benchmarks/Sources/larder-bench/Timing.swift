import Foundation

/// The medians of some contenders that take turns, in microseconds, so that a slow moment of the machine meets all of them.
func medians(rounds: Int, warmUp: Int = 50, _ contenders: [(Int) async throws -> Void]) async throws -> [Double] {
  var times = contenders.map { _ in [Double]() }
  for round in 0..<(warmUp + rounds) {
    for (index, contender) in contenders.enumerated() {
      let time = try await clock.measure { try await contender(round) }.microseconds
      if round >= warmUp { times[index].append(time) }
    }
  }
  return times.map(median)
}

/// How busy the machine has been for a minute: a figure from above 2 on two cores is a guess.
func loadAverage() -> String {
  do {
    return try String(contentsOfFile: "/proc/loadavg", encoding: .utf8).split(separator: " ").first.map(String.init) ?? "unknown"
  } catch {
    return "unknown"  // only Linux has the file
  }
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
