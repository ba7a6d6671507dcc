public import Logging

/// Recorder of answered requests in the metrics and the log, without any text that a client wrote.
public struct AnswerLog: Sendable {
  private let metrics: RequestMetrics
  private let logger: Logger

  /// Creates the recorder of a server.
  public init(metrics: RequestMetrics, logger: Logger) { (self.metrics, self.logger) = (metrics, logger) }

  /// Records one answer.
  ///
  /// - Parameter method: Method of the request if the path accepts it, else `nil`. Other methods and unknown paths are recorded as
  ///   `other`, because a client could fill memory and logs with invented ones.
  public func note(_ path: KnownPath?, method: String?, status: Int, seconds: Double = 0) {
    // One word for all unknown texts, because the labels of metrics stay in memory for as long as the process runs.
    let (template, method) = (path?.template ?? "other", method ?? "other")
    metrics.note(template, method, status: status, seconds: seconds)
    logger.info(
      "answered",
      metadata: [
        "route": "\(template)", "method": "\(method)", "status": "\(status)", "milliseconds": "\(Int((seconds * 1_000).rounded(.up)))",
      ])
  }
}
