import Foundation
import Larder
import Synchronization
import WeatherSpotsKit

/// Spots as answers and events have them, each written once for a revision: many readers ask for what few writers change.
final class RowCache: Sendable {
  private struct Row: Sendable {
    let revision: Revision
    let text: String
  }

  private let rows = Mutex<[String: Row]>([:])
  /// The number of spots beyond which all are forgotten.
  private static let most = 10_000

  /// Returns a spot as JSON.
  func text(of spot: Spot, at revision: Revision) throws -> String {
    if let row = rows.withLock({ $0[spot.id] }), row.revision == revision { return row.text }
    let text = try ReportJSON.text(SpotRow(spot, revision: revision))
    rows.withLock { rows in
      if rows.count >= Self.most { rows = [:] }
      // Of two that write at once, the newer one stays.
      if rows[spot.id].map({ $0.revision < revision }) ?? true { rows[spot.id] = Row(revision: revision, text: text) }
    }
    return text
  }
}
