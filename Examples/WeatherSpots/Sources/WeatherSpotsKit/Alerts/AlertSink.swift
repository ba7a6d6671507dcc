public import Foundation

/// A notice as it is handed over.
public struct AlertDelivery: Sendable {
  /// The watcher, the warning and its revision.
  public let key: NoticeKey
  /// The id of the watcher to notify.
  public let watcher: Watcher.ID
  /// The name of the watched place.
  public let place: String
  /// The warning.
  public let alert: WeatherAlert
  /// The revision of the warning.
  public let revision: AlertRevision
  /// The time at which the provider reported the warning.
  public let checkedAt: Date
  /// Whether an earlier attempt may have succeeded: it was begun, and what came of it is not known.
  public let mayBeRepeat: Bool
}

/// A destination of notices.
///
/// The pipeline notes an attempt in the store before it hands over, and the success after it. Between the two a crash leaves the outcome
/// unknown, and the notice is handed over again with ``AlertDelivery/mayBeRepeat``. What a sink makes of that is its promise:
/// ``FileSink`` looks whether the notice is there, a webhook's receiver can by the key, a terminal cannot.
public protocol AlertSink: Sendable {
  /// The name that watchers call it by, the same in every run.
  var name: String { get }
  /// The number of notices that are delivered at once, all or none: as many may be repeated after a crash.
  var batchLimit: Int { get }
  /// Takes all of the notices, durably if it can, or throws and has taken none for certain.
  func deliver(_ notices: [AlertDelivery]) async throws(SinkError)
}

/// The reason why a sink refused a notice.
public struct SinkError: Error, Hashable, CustomStringConvertible {
  /// A description on one line, without the contents of the notice.
  public let description: String
  /// The time to wait that the sink asks for.
  public let retryAfter: Duration?
  /// Whether it is certain that nothing was taken, because nothing was sent.
  public let tookNothing: Bool

  /// Makes an error.
  public init(_ description: String, retryAfter: Duration? = nil, tookNothing: Bool = false) {
    self.description = description
    self.retryAfter = retryAfter
    self.tookNothing = tookNothing
  }
}

/// The form in which a notice is written: one JSON object, keys in order, instants in ISO 8601.
private struct NoticeBody: Encodable {
  let key: NoticeKey
  let place: String
  let watcher: String
  let revision: AlertRevision
  let checkedAt: Date
  /// Left out where a repeat cannot be.
  let mayBeRepeat: Bool?
  let alert: WeatherAlert
}

extension AlertDelivery {
  /// Returns the notice as it is written, with the mark of a possible repeat where there can be one.
  func json(marksRepeats: Bool) throws(SinkError) -> Data {
    let body = NoticeBody(
      key: key, place: place, watcher: watcher, revision: revision, checkedAt: checkedAt, mayBeRepeat: marksRepeats ? mayBeRepeat : nil,
      alert: alert)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.dateEncodingStrategy = .iso8601
    do { return try encoder.encode(body) } catch { throw SinkError("the notice cannot be written as JSON", tookNothing: true) }
  }
}
