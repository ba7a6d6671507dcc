public import Foundation

/// A terminal, or whatever standard output is: a line for each notice.
///
/// A terminal cannot be asked what it has shown: after a crash between the line and the note of it the line comes again, with a mark.
public struct LineSink: AlertSink {
  /// `stdout`.
  public let name = "stdout"
  /// One: no more than one line can come twice.
  public let batchLimit = 1
  private let isJSON: Bool
  private let write: @Sendable (Data) throws -> Void

  /// Makes a sink.
  ///
  /// - Parameters:
  ///   - isJSON: Whether a line is a JSON object, with the key in it.
  ///   - write: Writes a line.
  public init(isJSON: Bool, write: @escaping @Sendable (Data) throws -> Void) {
    self.isJSON = isJSON
    self.write = write
  }

  /// Writes a line for each notice.
  public func deliver(_ notices: [AlertDelivery]) async throws(SinkError) {
    for notice in notices {
      let line = isJSON ? try notice.json(marksRepeats: true) : Data(Self.text(notice).utf8)
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
