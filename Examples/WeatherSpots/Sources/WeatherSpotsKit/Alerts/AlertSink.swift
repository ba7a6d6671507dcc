public import Foundation

/// A notice in the form in which a sink gets it.
public struct AlertDelivery: Sendable {
  /// Idempotency key: a digest of the watcher, the warning and its revision.
  public let key: NoticeKey
  /// Id of the watcher to notify.
  public let watcher: Watcher.ID
  /// Name of the watched place.
  public let place: String
  /// Warning to deliver.
  public let alert: WeatherAlert
  /// Revision of the warning.
  public let revision: AlertRevision
  /// Time at which the provider reported the warning.
  public let checkedAt: Date
  /// Whether an earlier attempt with unknown outcome may have delivered the notice.
  public let mayBeRepeat: Bool
}

/// A destination of notices, such as a file, a webhook or a terminal.
///
/// The pipeline stores each attempt before the delivery and its success after it. A crash in between leaves the outcome unknown, and the
/// notice is delivered again with ``AlertDelivery/mayBeRepeat``. Each sink has its own guarantee then. ``FileSink`` searches its file for
/// the notice, a webhook's receiver can compare the key, and a terminal cannot detect a repeat.
public protocol AlertSink: Sendable {
  /// Name by which watchers refer to the sink, the same in every run.
  var name: String { get }
  /// Largest number of notices in one call of `deliver`, all of which may be repeated after a crash.
  var batchLimit: Int { get }
  /// Delivers all of the notices, durably if the sink can.
  ///
  /// - Throws: `SinkError` if it is not certain that all of them were delivered.
  func deliver(_ notices: [AlertDelivery]) async throws(SinkError)
}

/// An error of a sink that did not accept a notice.
public struct SinkError: Error, Hashable, CustomStringConvertible {
  /// Description on one line, without the contents of the notice.
  public let description: String
  /// Time to wait that the sink asks for.
  public let retryAfter: Duration?
  /// Whether it is certain that nothing was delivered, because nothing was sent.
  public let tookNothing: Bool

  /// Makes an error.
  public init(_ description: String, retryAfter: Duration? = nil, tookNothing: Bool = false) {
    self.description = description
    self.retryAfter = retryAfter
    self.tookNothing = tookNothing
  }
}

extension AlertDelivery {
  /// Returns the notice as one JSON object with sorted keys and ISO 8601 dates.
  ///
  /// The mark of a possible repeat is left out for a sink that detects repeats itself, with `marksRepeats` false.
  func json(marksRepeats: Bool) throws(SinkError) -> Data {
    var body: JSONRow = ["key": key, "place": place, "watcher": watcher, "revision": revision, "checkedAt": checkedAt, "alert": alert]
    if marksRepeats { body = body.adding("mayBeRepeat", mayBeRepeat) }
    let encoder = JSONEncoder()
    // Sorted, so that `alert` comes first: `FileSink` recognises its own unfinished line by that beginning.
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.dateEncodingStrategy = .iso8601
    // Encoding comes before sending, so the error can promise that nothing was delivered.
    do { return try encoder.encode(body) } catch { throw SinkError("the notice cannot be written as JSON", tookNothing: true) }
  }
}
