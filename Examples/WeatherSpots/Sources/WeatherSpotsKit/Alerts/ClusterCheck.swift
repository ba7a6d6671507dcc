public import Foundation
import Larder

/// What was asked for a cluster, and what is known there.
public struct ClusterCheck: Codable, Identifiable, Sendable {
  /// The cell and the country.
  public let id: SpotCluster.ID
  /// How many watchers it has, as of the last question.
  public internal(set) var watchers: Int
  /// How often the provider was asked in all, failures included.
  public internal(set) var calls: Int
  /// When the provider was last asked.
  public internal(set) var askedAt: Date
  /// Whether that question has no answer yet: it is under way, or whoever asked it was killed.
  public internal(set) var isOpen: Bool
  /// When the provider last answered; `nil` while it has not.
  public internal(set) var checkedAt: Date?
  /// The warnings of that answer; not in force now if it is old, see ``isCurrent(at:)``.
  public internal(set) var alerts: [WeatherAlert]
  /// Why the last question has no answer, on one line.
  public internal(set) var problem: String?
  /// Whether the provider has no warnings here at all.
  public internal(set) var isOffered: Bool

  init(_ id: SpotCluster.ID) {
    self.id = id
    watchers = 0
    calls = 0
    askedAt = .distantPast
    isOpen = false
    alerts = []
    isOffered = true
  }

  /// How long an answer may be shown as what is in force.
  public static let lifetime: TimeInterval = 300

  /// Whether the answer is young enough to be shown as what is in force; never after a question that failed.
  public func isCurrent(at now: Date) -> Bool {
    guard let checkedAt, problem == nil, isOffered else { return false }
    return checkedAt <= now && now < checkedAt + Self.lifetime
  }

  static let schema = RepositorySchema<ClusterCheck>("alert-checks", version: 1)
}

/// The provider's calls of one day (UTC), so that a limit by the day holds across runs.
public struct CallLedger: Codable, Identifiable, Sendable {
  /// The day, as `yyyy-MM-dd`.
  public let id: String
  /// How many calls were made for clusters.
  public internal(set) var calls: Int
  /// How many would have been made with one for each watcher.
  public internal(set) var unclustered: Int

  static func day(_ instant: Date) -> String { LocalDay(containing: instant, in: .gmt).description }
  static let schema = RepositorySchema<CallLedger>("alert-calls", version: 1)
}
