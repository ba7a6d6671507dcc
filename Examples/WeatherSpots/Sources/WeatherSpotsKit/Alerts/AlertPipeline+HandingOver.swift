import Foundation
import Larder
import Logging

extension AlertPipeline {
  /// Hands over what is due, to all sinks side by side.
  func handOver(_ report: inout RoundReport) async throws {
    let now = clock.now
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
    let breaker = breakers[sink.name] ?? CircuitBreaker(clock: clock)
    var (delivered, failed, problem): (Int, Int, String?) = (0, 0, nil)
    while true {
      let deliveries = try await queue.claim(sink.name, limit: max(sink.batchLimit, 1), at: now)
      guard !deliveries.isEmpty else { return (delivered, failed, problem) }
      do {
        try await breaker.run { try await sink.deliver(deliveries) }
        try await queue.settle(deliveries, at: clock.now)
        delivered += deliveries.count
      } catch let error as SinkError {
        try Task.checkCancellation()
        let wait = try await backOff(deliveries, error)
        failed += deliveries.count
        problem = error.description
        logger.debug("a sink failed", metadata: ["sink": "\(sink.name.prefix(7))", "again in seconds": "\(Int(wait / .seconds(1)))"])
      } catch CacheError.circuitOpen(let until) {
        // Nothing was sent, and nothing more is in this round.
        let due = Dictionary(deliveries.map { ($0.key, until) }, uniquingKeysWith: { first, _ in first })
        try await queue.postpone(deliveries, until: due, tookNothing: true)
        return (delivered, failed, problem)
      }
    }
  }

  /// Puts notices back, each for a time that doubles with its attempts, up to an hour, of which half is random; or for as long as the
  /// sink asks.
  private nonisolated func backOff(_ deliveries: [AlertDelivery], _ error: SinkError) async throws -> Duration {
    var due: [NoticeKey: Date] = [:]
    var longest = Duration.zero
    for delivery in deliveries {
      let attempts = try await queue.notices.find(by: delivery.key)?.attempts ?? 1
      let ceiling = min(.seconds(3600), .seconds(30) * (1 << min(max(attempts - 1, 0), 10)))
      let wait = max(ceiling * Double.random(in: 0.5...1), error.retryAfter ?? .zero)
      due[delivery.key] = clock.now + wait / .seconds(1)
      longest = max(longest, wait)
    }
    try await queue.postpone(deliveries, until: due, tookNothing: error.tookNothing)
    return longest
  }
}
