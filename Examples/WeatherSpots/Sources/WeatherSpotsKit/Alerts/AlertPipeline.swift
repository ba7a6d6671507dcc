import Foundation
public import Larder
import Logging

/// A pipeline that fetches weather warnings and delivers them to watchers, in rounds.
///
/// Call ``round()`` repeatedly. A round calls the provider once for each cluster of watchers that is due, queues the notices that are new
/// to its watchers, and delivers the due notices. The process may be killed at any moment. The next round repeats a call without an
/// answer, and a delivery of unknown outcome, which it marks as a possible repeat. See ``AlertSink`` for the guarantee of each sink.
public actor AlertPipeline {
  /// Interval and limits of the calls to the provider.
  public struct Schedule: Sendable {
    /// Interval of the calls for a cluster: one in each span of this length.
    ///
    /// Spans are counted from 1970, so that a restart does not change them.
    public var every: Duration
    /// Largest number of calls on a UTC day, over all runs.
    public var callsPerDay: Int
    /// Largest number of concurrent calls.
    public var concurrency: Int

    /// Makes a schedule, by default with a call every five minutes, 10,000 calls a day and four concurrent ones.
    public init(every: Duration = .seconds(300), callsPerDay: Int = 10_000, concurrency: Int = 4) {
      self.every = every
      self.callsPerDay = callsPerDay
      // With 0 no call would ever start.
      self.concurrency = max(concurrency, 1)
    }
  }

  /// Clusters of the watchers, the largest first.
  public nonisolated let clusters: [SpotCluster]
  let queue: AlertQueue
  let sinks: [any AlertSink]
  let clock: any WallClock
  let breakers: [String: CircuitBreaker]
  let logger = Logger(label: "alerts")
  private let source: any AlertSource
  private let schedule: Schedule

  /// Makes a pipeline.
  ///
  /// - Parameters:
  ///   - watchers: Recipients of warnings. Each one names one of the sinks.
  ///   - queue: Durable queue of notices and calls.
  ///   - source: Source of warnings.
  ///   - sinks: Destinations of notices.
  ///   - schedule: Interval and limits of the calls.
  ///   - clock: Clock for schedules and waits.
  public init(
    _ watchers: [Watcher], queue: AlertQueue, source: any AlertSource, sinks: [any AlertSink], schedule: Schedule = .init(),
    clock: any WallClock = SystemClock()
  ) {
    clusters = SpotCluster.clusters(of: watchers)
    self.queue = queue
    self.source = source
    self.sinks = sinks
    self.schedule = schedule
    self.clock = clock
    // Sinks of one name share a breaker. Without `uniquingKeysWith` a repeated name would trap.
    breakers = Dictionary(sinks.map { ($0.name, CircuitBreaker(failureLimit: 3, clock: clock)) }, uniquingKeysWith: { first, _ in first })
  }

  /// Runs one round: calls the provider for the due clusters and delivers the due notices.
  ///
  /// - Throws: `CancellationError`, and `RepositoryError` of the store. Errors of the provider and of sinks are in the report.
  public func round() async throws -> RoundReport {
    var report = RoundReport()
    report.watchers = clusters.reduce(0) { $0 + $1.watchers.count }
    report.clusters = clusters.count
    try await ask(&report)
    // Before the delivery, so that no expired warning is delivered.
    report.lapsed = try await queue.tidy(at: clock.now)
    try await handOver(&report)
    report.waiting = try await waiting()
    return report
  }

  /// Returns the time until a cluster or a notice is next due, at least a second.
  public func timeUntilNextRound() async throws -> Duration {
    let now = clock.now
    var next = Date(timeIntervalSince1970: (span(of: now) + 1) * (schedule.every / .seconds(1)))
    for sink in sinks {
      if let notice = try await queue.notices.first(.queued(for: sink.name).sorted(by: \.due)) { next = min(next, notice.due) }
    }
    // The lower limit keeps the caller's loop from spinning over notices that are overdue.
    return max(.seconds(next.timeIntervalSince(now)), .seconds(1))
  }

  private func waiting() async throws -> Int {
    var count = 0
    for sink in sinks { count += try await queue.notices.count(.queued(for: sink.name)) }
    return count
  }

  // MARK: Asking

  fileprivate enum Outcome: Sendable {
    case queued(Int)
    case notOffered
    case failed(String)
    /// No request was sent, since a quota, an open circuit breaker, a hold or the configuration forbids it.
    case notAsked(String)
  }

  private func ask(_ report: inout RoundReport) async throws {
    var due = try await dueClusters()
    // Read from the store: the limit of the day covers earlier runs too.
    let left = max(schedule.callsPerDay - (try await queue.calls(onDayOf: clock.now)), 0)
    report.postponed = max(due.count - left, 0)
    due = Array(due.prefix(left))
    try await withThrowingTaskGroup(of: Outcome.self) { group in
      var rest = due.makeIterator()
      func startNext() {
        guard let cluster = rest.next() else { return }
        group.addTask { try await self.outcome(cluster) }
      }
      // The next task is added when one ends, so that at most `concurrency` calls run at a time.
      for _ in 0..<schedule.concurrency { startNext() }
      while let outcome = try await group.next() {
        startNext()
        report.add(outcome)
      }
    }
  }

  private nonisolated func outcome(_ cluster: SpotCluster) async throws -> Outcome {
    let begun = clock.now
    // Stored before the request: a crash then counts a call too many and never exceeds the limit of the day.
    let askedBefore = try await queue.begin(cluster, at: begun)
    let answer: AlertAnswer
    // A cancelled call leaves its cluster open in the store, so that the next run repeats it.
    do { answer = try await source.alerts(in: cluster) } catch let error as CancellationError { throw error } catch {
      let problem = WeatherProblem(error)
      logger.debug("a question for warnings failed", metadata: ["transient": "\(problem.isTransient)"])
      // A call that was never sent must not use up the day's limit.
      guard isOfARequest(error) else {
        try await queue.takeBack(cluster, problem.description, begun: begun, askedBefore: askedBefore)
        return .notAsked(problem.description)
      }
      try await queue.fail(cluster, problem.description)
      return .failed(problem.description)
    }
    let count = try await queue.finish(cluster, answer, at: clock.now)
    logger.debug("warnings asked for", metadata: ["watchers": "\(cluster.watchers.count)", "new notices": "\(count)"])
    if case .notOffered = answer { return .notOffered }
    return .queued(count)
  }

  /// Returns the number of the schedule's span that contains an instant, counted from 1970.
  private nonisolated func span(of instant: Date) -> Double {
    (instant.timeIntervalSince1970 / (schedule.every / .seconds(1))).rounded(.down)
  }

  /// Returns the clusters that are due, those with the oldest call first.
  private func dueClusters() async throws -> [SpotCluster] {
    let now = clock.now
    var due: [(cluster: SpotCluster, askedAt: Date)] = []
    for cluster in clusters {
      guard let check = try await queue.checks.find(by: cluster.id) else {
        due.append((cluster, .distantPast))
        continue
      }
      // A call in the future means that the clock was set back. Without this case the cluster would wait until that time.
      if check.isOpen || span(of: check.askedAt) < span(of: now) || check.askedAt > now { due.append((cluster, check.askedAt)) }
    }
    // The offset makes the order stable, which `sorted` does not promise.
    return due.enumerated().sorted { ($0.element.askedAt, $0.offset) < ($1.element.askedAt, $1.offset) }.map(\.element.cluster)
  }
}

extension RoundReport {
  fileprivate mutating func add(_ outcome: AlertPipeline.Outcome) {
    switch outcome {
    case .queued(let count):
      calls += 1
      queued += count
    case .notOffered:
      calls += 1
      notOffered += 1
    case .failed(let problem):
      calls += 1
      failedCalls += 1
      problems.insert(problem)
    // Counts as failed but not as a call, since nothing was sent.
    case .notAsked(let problem):
      failedCalls += 1
      problems.insert(problem)
    }
  }
}

/// Returns false if a call failed before any request was sent to the provider.
private func isOfARequest(_ error: any Error) -> Bool {
  // Unknown errors count as requests, so that the limit of the day is not exceeded.
  switch error {
  case CacheError.circuitOpen, CacheError.quotaExceeded, ProviderError.notAsked, ProviderError.misconfigured: false
  default: true
  }
}
