import Foundation

/// The seed of this run's random tests, which print it: from `LARDER_SEED`, or a new one each time.
enum TestSeed {
  static let value: UInt64 =
    ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) } ?? .random(in: .min ... .max)
}
