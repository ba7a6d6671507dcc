public import Foundation
import Larder

/// One thing to tell one watcher, as it lies in the queue.
public struct AlertNotice: Codable, Identifiable, Sendable {
  /// What became of it.
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
  /// Who is to hear of it.
  public let watcher: Watcher.ID
  /// What the place is called.
  public let place: String
  /// Where it goes.
  public let sink: String
  /// The warning; gone once it is settled.
  public internal(set) var alert: WeatherAlert?
  /// Which version of the warning.
  public let revision: AlertRevision
  /// When the provider was asked and said so.
  public let checkedAt: Date
  /// Until when the warning holds.
  public let expires: Date
  /// What became of it.
  public internal(set) var state: State
  /// How often it was handed over, or meant to be.
  public internal(set) var attempts: Int
  /// Whether an attempt may have succeeded: noted before it begins, so that it is known after a crash.
  public internal(set) var isOutcomeUnknown: Bool
  /// From when on it may be handed over.
  public internal(set) var due: Date
  /// When it was settled.
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
    state = .queued
    attempts = 0
    isOutcomeUnknown = false
    due = checkedAt
  }

  static let schema = RepositorySchema<AlertNotice>(
    "alert-notices", version: 1, indexes: [.ordered(\.sinkAndState, \.due), .ordered(\.isSettled, \.expires)])

  /// The column that says what is to be done for a sink.
  var sinkAndState: String { Self.column(sink, state) }
  var isSettled: Bool { state != .queued }
  static func column(_ sink: String, _ state: State) -> String { "\(state.rawValue) \(sink)" }
}
