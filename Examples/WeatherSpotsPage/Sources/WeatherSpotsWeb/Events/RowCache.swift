import Foundation
import Larder
import Synchronization
import WeatherSpotsKit

/// Cache of spots as JSON, each encoded once for a revision and shared by responses and events.
final class RowCache: Sendable {
  private struct Row: Sendable {
    let revision: Revision
    let text: String
  }

  private let rows = Mutex<[String: Row]>([:])
  /// Number of spots at which the cache is emptied before the next one is added.
  private static let most = 10_000

  /// Returns a spot as JSON, from the cache if it has this revision.
  func text(of spot: Spot, at revision: Revision) throws -> String {
    if let row = rows.withLock({ $0[spot.id] }), row.revision == revision { return row.text }
    // Encoded outside the lock, so that one spot does not hold up all streams.
    let text = try ReportJSON.text(SpotRow(spot, revision: revision))
    rows.withLock { rows in
      if rows.count >= Self.most { rows = [:] }
      // Of two tasks that encode the same spot at once, the newer revision stays.
      if rows[spot.id].map({ $0.revision < revision }) ?? true { rows[spot.id] = Row(revision: revision, text: text) }
    }
    return text
  }
}
