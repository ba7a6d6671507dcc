import Foundation
import Synchronization
import Testing

/// Proofs on processes of `larder-server` over a real PostgreSQL, one after another: each keeps the machine busy by itself.
///
/// Counts are small unless `LARDER_TORTURE=1`. What they counted is printed in lines that begin with "figures:".
@Suite(.serialized, .needsPostgres, .timeLimit(.minutes(20))) struct PostgresProofs {
  static let isTorture = ProcessInfo.processInfo.environment["LARDER_TORTURE"] == "1"

  /// Returns the small count, or the full one where that is asked for.
  static func count(_ small: Int, _ full: Int) -> Int { isTorture ? full : small }

  static func report(_ text: String) { print("figures: postgres: \(text)") }
}

/// Returns what lies behind a share of values, which must not be empty.
func percentile(_ share: Double, of values: [Double]) -> Double {
  let sorted = values.sorted()
  return sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
}

extension Duration {
  /// The duration in milliseconds.
  var milliseconds: Double { self / .milliseconds(1) }
}

/// A number that many tasks count up.
final class Counter: Sendable {
  private let count = Mutex(0)
  var value: Int { count.withLock { $0 } }
  func add() { count.withLock { $0 += 1 } }
}
