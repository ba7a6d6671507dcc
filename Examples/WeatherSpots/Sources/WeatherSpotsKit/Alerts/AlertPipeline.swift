import Foundation
public import Larder
import Logging

/// Asks for warnings and tells watchers, round by round.
///
/// A round asks the provider once for each cluster whose turn it is, queues what its watchers have not been told, and hands over what
/// is due. Killed at any moment, the next round goes on: a question without an answer is asked again, and an attempt to hand over of which
/// nothing is known is repeated, marked as such; see ``AlertSink`` for what that means for each sink.
public actor AlertPipeline {
  /// The times and limits of calls.
  public struct Schedule: Sendable {
    /// The interval of calls for a cluster: one in each span of this length, counted from 1970, so that restarts change nothing.
    public var every: Duration
    /// The number of calls allowed on a day (UTC), over all runs.
    public var callsPerDay: Int
    /// The number of calls that run at a time.
    public var concurrency: Int

    /// Makes a schedule: every five minutes, four at a time, 10,000 a day.
    public init(every: Duration = .seconds(300), callsPerDay: Int = 10_000, concurrency: Int = 4) {
      self.every = every
      self.callsPerDay = callsPerDay
      self.concurrency = max(concurrency, 1)
    }
  }

  /// The clusters that are watched, the largest first.
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
  ///   - watchers: Who is told; each names one of the sinks.
  ///   - queue: What is durable.
  ///   - source: Who is asked.
  ///   - sinks: Where notices go.
  ///   - schedule: When questions are asked.
  ///   - clock: The time.
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
    breakers = Dictionary(sinks.map { ($0.name, CircuitBreaker(failureLimit: 3, clock: clock)) }, uniquingKeysWith: { first, _ in first })
  }

  /// Does what is due.
  ///
  /// - Throws: `CancellationError`, `RepositoryError` of the store; what the provider and sinks fail in is in the report.
  public func round() async throws -> RoundReport {
    var report = RoundReport()
    report.watchers = clusters.reduce(0) { $0 + $1.watchers.count }
    report.clusters = clusters.count
    try await ask(&report)
    report.lapsed = try await queue.tidy(at: clock.now)
    try await handOver(&report)
    report.waiting = try await waiting()
    return report
  }

  /// Returns how long until the clusters' turn, or a notice's; at least a second.
  public func timeUntilNextRound() async throws -> Duration {
    let now = clock.now
    var next = Date(timeIntervalSince1970: (span(of: now) + 1) * (schedule.every / .seconds(1)))
    for sink in sinks {
      if let notice = try await queue.notices.first(.queued(for: sink.name).sorted(by: \.due)) { next = min(next, notice.due) }
    }
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
    /// No request was made, because it would have been of no use.
    case notAsked(String)
  }

  private func ask(_ report: inout RoundReport) async throws {
    var due = try await dueClusters()
    let left = max(schedule.callsPerDay - (try await queue.calls(onDayOf: clock.now)), 0)
    report.postponed = max(due.count - left, 0)
    due = Array(due.prefix(left))
    try await withThrowingTaskGroup(of: Outcome.self) { group in
      var rest = due.makeIterator()
      func startNext() {
        guard let cluster = rest.next() else { return }
        group.addTask { try await self.outcome(cluster) }
      }
      for _ in 0..<schedule.concurrency { startNext() }
      while let outcome = try await group.next() {
        startNext()
        report.add(outcome)
      }
    }
  }

  private nonisolated func outcome(_ cluster: SpotCluster) async throws -> Outcome {
    let begun = clock.now
    let askedBefore = try await queue.begin(cluster, at: begun)
    let answer: AlertAnswer
    do { answer = try await source.alerts(in: cluster) } catch let error as CancellationError { throw error } catch {
      let problem = WeatherProblem(error)
      logger.debug("a question for warnings failed", metadata: ["transient": "\(problem.isTransient)"])
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

  /// Returns the number of the span of time that an instant is in; a cluster is asked for once in each.
  private nonisolated func span(of instant: Date) -> Double {
    (instant.timeIntervalSince1970 / (schedule.every / .seconds(1))).rounded(.down)
  }

  /// Returns the clusters whose turn it is, those first that have waited longest.
  private func dueClusters() async throws -> [SpotCluster] {
    let now = clock.now
    var due: [(cluster: SpotCluster, askedAt: Date)] = []
    for cluster in clusters {
      guard let check = try await queue.checks.find(by: cluster.id) else {
        due.append((cluster, .distantPast))
        continue
      }
      // Asked in the future means that the clock was set back.
      if check.isOpen || span(of: check.askedAt) < span(of: now) || check.askedAt > now { due.append((cluster, check.askedAt)) }
    }
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
    case .notAsked(let problem):
      failedCalls += 1
      problems.insert(problem)
    }
  }
}

/// Returns whether a failed call reached the provider, or may have.
private func isOfARequest(_ error: any Error) -> Bool {
  switch error {
  case CacheError.circuitOpen, CacheError.quotaExceeded, ProviderError.notAsked, ProviderError.misconfigured: false
  default: true
  }
}
