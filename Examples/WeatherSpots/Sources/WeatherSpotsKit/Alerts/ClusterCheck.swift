public import Foundation
import Larder

/// The calls made for a cluster and its last known warnings.
public struct ClusterCheck: Codable, Identifiable, Sendable {
  /// The cell and the country.
  public let id: SpotCluster.ID
  /// The number of watchers at the last call.
  public internal(set) var watchers = 0
  /// The number of calls so far, failures included.
  public internal(set) var calls = 0
  /// The time of the last call.
  public internal(set) var askedAt = Date.distantPast
  /// Whether that question has no answer yet: it is under way, or the process that asked it was killed.
  public internal(set) var isOpen = false
  /// The time of the last answer; `nil` before the first.
  public internal(set) var checkedAt: Date?
  /// The warnings of that answer.
  ///
  /// Not in force now if it is old: see ``isCurrent(at:)``.
  public internal(set) var alerts: [WeatherAlert] = []
  /// The reason why the last call failed, on one line.
  public internal(set) var problem: String?
  /// Whether the provider has no warnings here at all.
  public internal(set) var isOffered = true

  /// The time for which an answer may be shown as current.
  public static let lifetime: TimeInterval = 300

  /// Returns whether the answer is young enough to be shown as what is in force; never after a question that failed.
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
  /// The number of calls made for clusters.
  public internal(set) var calls: Int
  /// The number of calls that one for each watcher would have made.
  public internal(set) var unclustered: Int

  static func day(_ instant: Date) -> String { LocalDay(containing: instant, in: .gmt).description }
  static let schema = RepositorySchema<CallLedger>("alert-calls", version: 1)
}
