public import Logging

/// The notes of answers: in numbers, and in the log, without what clients have written.
public struct AnswerLog: Sendable {
  private let metrics: RequestMetrics
  private let logger: Logger

  /// Makes the notes of a server.
  public init(metrics: RequestMetrics, logger: Logger) { (self.metrics, self.logger) = (metrics, logger) }

  /// Notes an answer.
  ///
  /// - Parameter method: The method, where the path takes it: other methods and paths would fill memory and logs with what strangers write.
  public func note(_ path: KnownPath?, method: String?, status: Int, seconds: Double = 0) {
    let (template, method) = (path?.template ?? "other", method ?? "other")
    metrics.note(template, method, status: status, seconds: seconds)
    logger.info(
      "answered",
      metadata: [
        "route": "\(template)", "method": "\(method)", "status": "\(status)", "milliseconds": "\(Int((seconds * 1_000).rounded(.up)))",
      ])
  }
}
