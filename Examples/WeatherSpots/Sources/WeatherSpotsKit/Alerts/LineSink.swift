public import Foundation

/// A sink that writes each notice as a line to standard output.
///
/// A terminal cannot detect a repeat. After a crash between the line and the record of its success, the line is written again with a mark.
public struct LineSink: AlertSink {
  /// Name of the sink: `stdout`.
  public let name = "stdout"
  /// One notice in each call, so that a crash repeats at most one line.
  public let batchLimit = 1
  private let isJSON: Bool
  private let write: @Sendable (Data) throws -> Void

  /// Makes a sink.
  ///
  /// - Parameters:
  ///   - isJSON: True for lines of JSON with the idempotency key, false for lines of text.
  ///   - write: Writes a line.
  public init(isJSON: Bool, write: @escaping @Sendable (Data) throws -> Void) {
    self.isJSON = isJSON
    self.write = write
  }

  /// Writes a line for each notice.
  public func deliver(_ notices: [AlertDelivery]) async throws(SinkError) {
    for notice in notices {
      let line = isJSON ? try notice.json(marksRepeats: true) : Data(Self.text(notice).utf8)
      // The line and its end in one write, so that output of others cannot come between them.
      do { try write(line + Data("\n".utf8)) } catch { throw SinkError("standard output cannot be written") }
    }
  }

  static func text(_ notice: AlertDelivery) -> String {
    let alert = notice.alert
    let area = alert.areaName.map { " (\($0))" } ?? ""
    let repeated = notice.mayBeRepeat ? " [perhaps told before]" : ""
    return "! \(notice.place): \(alert.summary), \(alert.severity)\(area), until \(alert.expires.formatted(.iso8601)), \(alert.source), "
      + "issued \(alert.issued.formatted(.iso8601)), as of \(notice.checkedAt.formatted(.iso8601))\(repeated)"
  }
}
