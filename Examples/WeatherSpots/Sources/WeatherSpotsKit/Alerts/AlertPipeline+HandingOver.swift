import Foundation
import Larder
import Logging

extension AlertPipeline {
  /// Delivers the due notices to all sinks concurrently.
  func handOver(_ report: inout RoundReport) async throws {
    // One time for the round: a notice that is put back is due later than this and is not claimed twice.
    let now = clock.now
    // A task for each sink, so that a slow webhook does not delay the file or the terminal.
    try await withThrowingTaskGroup(of: (delivered: Int, failed: Int, problem: String?).self) { group in
      for sink in sinks {
        group.addTask { try await self.handOver(to: sink, dueAt: now) }
      }
      for try await (delivered, failed, problem) in group {
        report.delivered += delivered
        report.failedDeliveries += failed
        if let problem { report.problems.insert(problem) }
      }
    }
  }

  private nonisolated func handOver(to sink: any AlertSink, dueAt now: Date) async throws -> (delivered: Int, failed: Int, problem: String?)
  {
    // The breaker belongs to the pipeline, so that its count of failures survives the round.
    let breaker = breakers[sink.name] ?? CircuitBreaker(clock: clock)
    var (delivered, failed, problem): (Int, Int, String?) = (0, 0, nil)
    while true {
      // A limit of 0 would claim nothing, and the sink's notices would stay in the queue until they lapse.
      let deliveries = try await queue.claim(sink.name, limit: max(sink.batchLimit, 1), at: now)
      guard !deliveries.isEmpty else { return (delivered, failed, problem) }
      do {
        try await breaker.run { try await sink.deliver(deliveries) }
        // Settled after the sink has returned. A crash in between repeats the delivery, and none is lost.
        try await queue.settle(deliveries, at: clock.now)
        delivered += deliveries.count
      } catch let error as SinkError {
        // A cancelled attempt is no failure of the sink: its notices stay due, marked as possible repeats.
        try Task.checkCancellation()
        let wait = try await backOff(deliveries, error)
        failed += deliveries.count
        problem = error.description
        logger.debug("a sink failed", metadata: ["sink": "\(sink.name.prefix(7))", "again in seconds": "\(Int(wait / .seconds(1)))"])
      } catch CacheError.circuitOpen(let until) {
        // The circuit breaker is open: nothing was sent, and the sink gets no more calls in this round.
        let due = Dictionary(deliveries.map { ($0.key, until) }, uniquingKeysWith: { first, _ in first })
        try await queue.postpone(deliveries, until: due, tookNothing: true)
        return (delivered, failed, problem)
      }
    }
  }

  /// Reschedules notices that a sink refused, and returns the longest wait.
  ///
  /// The ceiling of the wait is 30 s and doubles with each attempt, up to an hour. The wait is a random share of it, at least half. It is
  /// longer if the sink asks for more.
  private nonisolated func backOff(_ deliveries: [AlertDelivery], _ error: SinkError) async throws -> Duration {
    var due: [NoticeKey: Date] = [:]
    var longest = Duration.zero
    for delivery in deliveries {
      let attempts = try await queue.notices.find(by: delivery.key)?.attempts ?? 1
      // The exponent is capped, since a notice may have any number of attempts and the shift would overflow.
      let ceiling = min(.seconds(3600), .seconds(30) * (1 << min(max(attempts - 1, 0), 10)))
      // Random, so that notices that failed together do not all return together.
      let wait = max(ceiling * Double.random(in: 0.5...1), error.retryAfter ?? .zero)
      due[delivery.key] = clock.now + wait / .seconds(1)
      longest = max(longest, wait)
    }
    try await queue.postpone(deliveries, until: due, tookNothing: error.tookNothing)
    return longest
  }
}
