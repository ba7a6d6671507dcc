import Foundation
public import Larder
import Synchronization

/// The pipeline with many watchers on a clock of its own: the same code as for real, with a script in the provider's place.
///
/// Everything follows from the seed, so that two runs print the same.
public struct AlertSimulation: Sendable {
  /// The number of watchers.
  public var watchers: Int
  /// The seed of all random choices.
  public var seed: UInt64
  /// The simulated time.
  public var duration: Duration
  /// The interval between two calls for a cluster.
  public var every: Duration

  /// Makes a simulation: 100,000 watchers for six hours, a quarter of an hour apart.
  public init(watchers: Int = 100_000, seed: UInt64 = 1, duration: Duration = .hours(6), every: Duration = .seconds(900)) {
    self.watchers = watchers
    self.seed = seed
    self.duration = duration
    self.every = every
  }

  /// The result of a simulation.
  public struct Result: Codable, Hashable, Sendable {
    /// The number of watchers.
    public var watchers = 0
    /// The number of different points at which the watchers are.
    public var points = 0
    /// The number of clusters that the watchers formed.
    public var clusters = 0
    /// The number of watchers in the largest cluster.
    public var largestCluster = 0
    /// The greatest distance of a watcher from the point that was asked about, in metres.
    public var farthestMeters = 0
    /// The number of rounds.
    public var rounds = 0
    /// The number of calls to the provider.
    public var calls = 0
    /// The number of calls that one call for each watcher would have made.
    public var callsWithoutClusters = 0
    /// The number of calls that failed as scripted.
    public var failedCalls = 0
    /// The number of calls in the busiest minute.
    public var callsInBusiestMinute = 0
    /// The number of warnings.
    public var alerts = 0
    /// The number of notices that the script requires.
    public var expectedNotices = 0
    /// The number of notices that were delivered.
    public var notices = 0
    /// The number of notices that lapsed because the calls of a round took longer than their warning held.
    public var lapsedNotices = 0
    /// The number of notices that were delivered more than once.
    public var repeatedNotices = 0

    /// The share of the calls that was saved, in percent.
    public var savedPercent: Double {
      callsWithoutClusters == 0 ? 0 : (100 * (1 - Double(calls) / Double(callsWithoutClusters))).rounded(decimals: 2)
    }
  }

  /// Runs it in memory; a tenth of a gigabyte and some seconds for 100,000 watchers.
  ///
  /// - Parameters:
  ///   - spots: Around which the watchers are, most of them around a few.
  ///   - progress: Told the part that is done, from 0 to 1.
  public func run(around spots: [Spot], progress: (Double) -> Void = { _ in }) async throws -> Result {
    let start = Date(timeIntervalSince1970: 1_767_225_600)
    let clock = SteppingClock(start)
    let watchers = self.watchers(around: spots)
    let script = AlertScript(seed: seed, around: spots, from: start, for: duration, clock: clock)
    let sink = CountingSink()
    let store = try await Store.open(InMemoryBackend())
    // So many at once and as many again within a minute: 480, four fifths of what the free services allow.
    let quota = TokenBucket(240, per: .seconds(60), maximumWait: every, clock: clock)
    let pipeline = AlertPipeline(
      watchers, queue: try await AlertQueue(store), source: script, sinks: [sink],
      schedule: .init(every: every, callsPerDay: .max, concurrency: 1, quota: quota), clock: clock)
    var result = Result()
    let rounds = max(Int(duration / every), 1)
    for round in 0..<rounds {
      clock.advance(to: start + every / .seconds(1) * Double(round))
      let report = try await pipeline.round()
      result.calls += report.calls
      result.failedCalls += report.failedCalls
      result.lapsedNotices += report.lapsed
      result.callsWithoutClusters += report.watchers
      progress(Double(round + 1) / Double(rounds))
    }
    try await store.close()
    result.watchers = watchers.count
    result.points = Set(watchers.map(\.coordinate)).count
    result.clusters = pipeline.clusters.count
    result.largestCluster = pipeline.clusters.first?.watchers.count ?? 0
    let distances = pipeline.clusters.lazy.flatMap { cluster in cluster.watchers.map { cluster.center.kilometers(to: $0.coordinate) } }
    result.farthestMeters = Int(((distances.max() ?? 0) * 1000).rounded())
    result.rounds = rounds
    result.callsInBusiestMinute = script.callsInBusiestMinute
    result.alerts = script.count
    result.expectedNotices = script.expectedNotices
    (result.notices, result.repeatedNotices) = (sink.total, sink.repeated)
    return result
  }

  /// Half of the watchers are where a spot is, the others some kilometres around one; a few spots have most of them.
  func watchers(around spots: [Spot]) -> [Watcher] {
    var random = SplitMix(seed)
    guard !spots.isEmpty else { return [] }
    return (0..<watchers).map { index in
      // The square favours the first ones of the list.
      let choice = Int(random.unit() * random.unit() * Double(spots.count))
      let spot = spots[choice]
      let (distance, angle) = (random.unit() < 0.5 ? 0 : 3 * (-2 * log(1 - random.unit())).squareRoot(), 2 * Double.pi * random.unit())
      let latitude = min(max(spot.latitude + distance * sin(angle) / 111.2, -90), 90)
      let width = max(cos(spot.latitude * .pi / 180), 0.01)
      let longitude = spot.longitude + distance * cos(angle) / (111.2 * width)
      let wrapped = longitude > 180 ? longitude - 360 : longitude < -180 ? longitude + 360 : longitude
      return Watcher(
        id: "watcher \(index)", place: spot.name, at: Coordinate(stored: latitude, wrapped), timezone: spot.timezone, country: spot.country,
        sink: CountingSink.sinkName)
    }
  }
}

/// A clock that stands until it is moved, and on which sleeping moves it.
private final class SteppingClock: WallClock {
  private let start: Date
  private let passed = Mutex(Duration.zero)

  init(_ start: Date) { self.start = start }

  var now: Date { start + uptime / .seconds(1) }
  var uptime: Duration { passed.withLock { $0 } }
  func sleep(for duration: Duration) async throws { passed.withLock { $0 += max(duration, .zero) } }

  /// Never goes back.
  func advance(to instant: Date) {
    let target = Duration.seconds(instant.timeIntervalSince(start))
    passed.withLock { $0 = max($0, target) }
  }
}

/// Counts what it is given, key by key.
private final class CountingSink: AlertSink {
  static let sinkName = "count"
  private let counts = Mutex<[NoticeKey: Int]>([:])

  var name: String { Self.sinkName }
  var batchLimit: Int { 1000 }
  var total: Int { counts.withLock { $0.values.reduce(0, +) } }
  var repeated: Int { counts.withLock { $0.values.count { $0 > 1 } } }

  func deliver(_ notices: [AlertDelivery]) async throws(SinkError) {
    counts.withLock { counts in
      for notice in notices { counts[notice.key, default: 0] += 1 }
    }
  }
}
