public import Foundation
import Larder

/// One thing to tell one watcher, as it lies in the queue.
public struct AlertNotice: Codable, Identifiable, Sendable {
  /// The state of the notice.
  public enum State: String, Codable, Sendable, CaseIterable {
    /// Not handed over yet, or not for certain.
    case queued
    /// Handed over.
    case delivered
    /// The warning expired before it could be handed over.
    case lapsed
  }

  /// The watcher, the warning and its revision: the idempotency key.
  public let id: NoticeKey
  /// The id of the watcher to notify.
  public let watcher: Watcher.ID
  /// The name of the watched place.
  public let place: String
  /// The name of the sink that delivers it.
  public let sink: String
  /// The warning; gone once it is settled.
  public internal(set) var alert: WeatherAlert?
  /// The revision of the warning.
  public let revision: AlertRevision
  /// The time at which the provider reported the warning.
  public let checkedAt: Date
  /// The time until which the warning holds.
  public let expires: Date
  /// The state of the notice.
  public internal(set) var state = State.queued
  /// The number of delivery attempts, the one under way included.
  public internal(set) var attempts = 0
  /// Whether an attempt may have succeeded: noted before it begins, so that it is known after a crash.
  public internal(set) var isOutcomeUnknown = false
  /// The time from which on it may be handed over.
  public internal(set) var due: Date
  /// The time at which the notice was delivered or lapsed.
  public internal(set) var settledAt: Date?

  init(_ alert: WeatherAlert, _ revision: AlertRevision, for watcher: Watcher, checkedAt: Date) {
    id = NoticeKey(watcher: watcher.id, alert: alert.id, revision: revision)
    self.watcher = watcher.id
    place = watcher.place
    sink = watcher.sink
    self.alert = alert
    self.revision = revision
    self.checkedAt = checkedAt
    expires = alert.expires
    due = checkedAt
  }

  static let schema = RepositorySchema<AlertNotice>(
    "alert-notices", version: 1, indexes: [.ordered(\.sinkAndState, \.due), .ordered(\.isSettled, \.expires)])

  /// The column that says what is to be done for a sink.
  var sinkAndState: String { Self.column(sink, state) }
  var isSettled: Bool { state != .queued }
  static func column(_ sink: String, _ state: State) -> String { "\(state.rawValue) \(sink)" }
}

extension Query<AlertNotice> {
  /// Returns the notices that wait for a sink.
  static func queued(for sink: String) -> Query<AlertNotice> {
    let column = AlertNotice.column(sink, .queued)
    return Query().where(#Predicate { $0.sinkAndState == column })
  }
}
