internal import Logging

/// The notes of answers: in the numbers that `/metrics` tells, and in the log, without what clients have written.
struct AnswerLog: Sendable {
  let metrics: ServerMetrics
  let logger: Logger

  /// Notes an answer.
  /// - Parameter method: The method, where it is that of the route: other methods and paths would fill memory and logs with what strangers
  ///   write.
  func note(_ route: Route?, method: String?, status: Int, seconds: Double = 0) {
    let (template, method) = (route?.template ?? "other", method ?? "other")
    metrics.note(template, method, status: status, seconds: seconds)
    logger.info(
      "answered",
      metadata: [
        "route": "\(template)", "method": "\(method)", "status": "\(status)", "milliseconds": "\(Int((seconds * 1_000).rounded(.up)))",
      ])
  }
}
