import Foundation
import Larder
import Synchronization

/// A provider of made-up warnings: the same for the same seed, at any time.
///
/// A warning holds in a circle for some hours and is revised once or twice; one question in fifty fails.
final class AlertScript: AlertSource {
  private struct Made: Sendable {
    let center: Coordinate
    let kilometers: Double
    /// The revisions, in order of when they are issued.
    let revisions: [WeatherAlert]
  }

  private struct Log {
    var callsByMinute: [Int: Int] = [:]
    var told: Set<Told> = []
    var expected = 0
  }

  /// Something that the members of a cluster are to be told.
  private struct Told: Hashable {
    let cluster: SpotCluster.ID
    let alert: WeatherAlert
  }

  private let seed: UInt64
  private let clock: any WallClock
  private let made: [Made]
  private let log = Mutex(Log())

  /// Makes a warning for each five spots in six hours.
  init(seed: UInt64, around spots: [Spot], from start: Date, for duration: Duration, clock: any WallClock) {
    self.seed = seed
    self.clock = clock
    var random = SplitMix(seed ^ 0xA1E2)
    let seconds = duration / .seconds(1)
    let count = spots.isEmpty ? 0 : max(Int(Double(spots.count) / 5 * seconds / 21_600), 1)
    made = (0..<count).map { number in
      let spot = spots[Int(random.unit() * Double(spots.count))]
      let begin = start + (random.unit() * seconds).rounded()
      let lasting = 3600 * (1 + (random.unit() * 8).rounded())
      let severity = ["minor", "moderate", "severe", "extreme"][Int(random.unit() * 4)]
      let kind = ["Wind", "Thunderstorms", "Coastal flooding", "Fog", "Heavy rain", "High waves"][Int(random.unit() * 6)]
      let revisions = (0...Int(random.unit() * 3)).map { revision in
        let issued = begin + Double(revision) * 1800
        return WeatherAlert(
          id: "exercise-\(seed)-\(number)", summary: "Exercise: \(kind)\(revision == 0 ? "" : ", update \(revision)")", areaName: spot.name,
          source: "weather-spots, made up", severity: severity, issued: issued, effective: issued,
          expires: begin + lasting + Double(revision) * 1800)
      }
      return Made(center: spot.coordinate, kilometers: 10 + random.unit() * 40, revisions: revisions)
    }
  }

  var count: Int { made.count }
  var callsInBusiestMinute: Int { log.withLock { $0.callsByMinute.values.max() ?? 0 } }
  var expectedNotices: Int { log.withLock { $0.expected } }

  func alerts(in cluster: SpotCluster) async throws -> AlertAnswer {
    let now = clock.now
    let minute = Int(now.timeIntervalSince1970 / 60)
    log.withLock { $0.callsByMinute[minute, default: 0] += 1 }
    // Of the question itself, so that the answers do not depend on the order of the questions.
    var random = SplitMix(seed ^ UInt64(bitPattern: Int64(minute)) &* 0x9E37_79B9 ^ Self.number(cluster.id.rawValue))
    guard random.unit() >= 0.02 else { throw ProviderError.serviceFailed(status: 503) }
    let center = cluster.center
    let alerts = made.compactMap { made -> WeatherAlert? in
      guard let alert = made.revisions.last(where: { $0.issued <= now }), now < alert.expires else { return nil }
      return made.center.kilometers(to: center) <= made.kilometers ? alert : nil
    }
    log.withLock { log in
      for alert in alerts where log.told.insert(Told(cluster: cluster.id, alert: alert)).inserted { log.expected += cluster.watchers.count }
    }
    return .alerts(alerts)
  }

  private static func number(_ text: String) -> UInt64 { text.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 } }
}

/// Numbers that follow from a seed: SplitMix64.
struct SplitMix {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }

  /// From 0 up to 1.
  mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }
}
