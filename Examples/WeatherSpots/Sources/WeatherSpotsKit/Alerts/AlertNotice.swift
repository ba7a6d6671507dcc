public import Foundation
import Larder

/// A queued notice: one revision of a weather warning for one watcher.
public struct AlertNotice: Codable, Identifiable, Sendable {
  /// Delivery state of a notice.
  public enum State: String, Codable, Sendable, CaseIterable {
    /// Not delivered yet, or an attempt whose outcome is unknown.
    case queued
    /// Accepted by the sink.
    case delivered
    /// Not delivered before the warning expired.
    case lapsed
  }

  /// Idempotency key: a digest of the watcher, the warning and its revision.
  public let id: NoticeKey
  /// Id of the watcher to notify.
  public let watcher: Watcher.ID
  /// Name of the watched place.
  public let place: String
  /// Name of the sink that delivers the notice.
  public let sink: String
  /// Warning to deliver, or `nil` once the notice is delivered or lapsed.
  public internal(set) var alert: WeatherAlert?
  /// Revision of the warning.
  public let revision: AlertRevision
  /// Time at which the provider reported the warning.
  public let checkedAt: Date
  /// Time at which the warning expires.
  public let expires: Date
  /// Delivery state.
  public internal(set) var state = State.queued
  /// Number of delivery attempts, including one under way.
  public internal(set) var attempts = 0
  /// Whether an earlier attempt may have succeeded.
  ///
  /// The mark is stored before each attempt, so that it survives a crash.
  public internal(set) var isOutcomeUnknown = false
  /// Earliest time of the next delivery attempt.
  public internal(set) var due: Date
  /// Time at which the notice was delivered or lapsed.
  public internal(set) var settledAt: Date?

  init(_ alert: WeatherAlert, _ revision: AlertRevision, for watcher: Watcher, checkedAt: Date) {
    id = NoticeKey(watcher: watcher.id, alert: alert.id, revision: revision)
    self.watcher = watcher.id
    place = watcher.place
    sink = watcher.sink
    self.alert = alert
    self.revision = revision
    self.checkedAt = checkedAt
    // Copied, since `alert` is dropped when the notice is settled and old notices are found by this date.
    expires = alert.expires
    due = checkedAt
  }

  static let schema = RepositorySchema<AlertNotice>(
    "alert-notices", version: 1, indexes: [.ordered(\.sinkAndState, \.due), .ordered(\.isSettled, \.expires)])

  /// Indexed column that combines state and sink, so that one index finds the queued notices of a sink in order of `due`.
  var sinkAndState: String { Self.column(sink, state) }
  var isSettled: Bool { state != .queued }
  // The state comes first: it has no space, so no name of a sink can make two pairs look alike.
  static func column(_ sink: String, _ state: State) -> String { "\(state.rawValue) \(sink)" }
}

extension Query<AlertNotice> {
  /// Returns a query for the queued notices of a sink.
  static func queued(for sink: String) -> Query<AlertNotice> {
    // Computed outside: `#Predicate` compares with a captured value and cannot call the function.
    let column = AlertNotice.column(sink, .queued)
    return Query().where(#Predicate { $0.sinkAndState == column })
  }
}
