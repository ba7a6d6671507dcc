public import Foundation
import Larder

/// A record of the provider calls for a cluster, with its last known warnings.
public struct ClusterCheck: Codable, Identifiable, Sendable {
  /// Geohash cell and country of the cluster.
  public let id: SpotCluster.ID
  /// Number of watchers at the last call.
  public internal(set) var watchers = 0
  /// Number of calls so far, including failed ones.
  public internal(set) var calls = 0
  /// Time of the last call.
  public internal(set) var askedAt = Date.distantPast
  /// Whether the last call has no answer yet: it is under way, or its process was killed.
  public internal(set) var isOpen = false
  /// Time of the last answer, or `nil` before the first.
  public internal(set) var checkedAt: Date?
  /// Warnings of the last answer.
  ///
  /// They may have expired or been revised since: see ``isCurrent(at:)``.
  public internal(set) var alerts: [WeatherAlert] = []
  /// Problem of the last call on one line, or `nil` if it succeeded.
  public internal(set) var problem: String?
  /// False if the provider offers no warnings at this place.
  public internal(set) var isOffered = true

  /// Seconds for which an answer may be shown as current.
  public static let lifetime: TimeInterval = 300

  /// Returns true if the last answer is recent enough to be shown as current, and false if the last call failed.
  public func isCurrent(at now: Date) -> Bool {
    guard let checkedAt, problem == nil, isOffered else { return false }
    // An answer from the future means that the clock was set back, and its age is unknown.
    return checkedAt <= now && now < checkedAt + Self.lifetime
  }

  static let schema = RepositorySchema<ClusterCheck>("alert-checks", version: 1)
}

/// The number of provider calls on one UTC day, stored so that the daily limit holds across runs.
public struct CallLedger: Codable, Identifiable, Sendable {
  /// Day in the form `yyyy-MM-dd`.
  public let id: String
  /// Number of calls made for clusters.
  public internal(set) var calls: Int
  /// Number of calls that the watchers would have needed without clusters, one for each watcher.
  public internal(set) var unclustered: Int

  static func day(_ instant: Date) -> String { LocalDay(containing: instant, in: .gmt).description }
  static let schema = RepositorySchema<CallLedger>("alert-calls", version: 1)
}
