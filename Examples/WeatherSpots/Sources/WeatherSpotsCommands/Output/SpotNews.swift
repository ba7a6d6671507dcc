import Larder
import WeatherSpotsKit

/// Change of a spot as seen through a filter: added, changed or removed.
struct SpotNews: Encodable {
  let change: String
  let spot: Spot

  /// Creates the news of a change, or returns `nil` if nothing changed for a viewer of the filtered spots.
  init?(_ change: ChangeSet<Spot>.Change, _ filter: SpotFilter = SpotFilter()) {
    let old = change.old.flatMap { filter.contains($0) ? $0 : nil }
    let new = change.new.flatMap { filter.contains($0) ? $0 : nil }
    // A commit may save an unchanged spot, which is no news.
    guard let spot = new ?? old, old != new else { return nil }
    self.spot = spot
    self.change = old == nil ? "added" : new == nil ? "removed" : "changed"
  }

  var text: String {
    let sign = change == "added" ? "+" : change == "removed" ? "-" : "~"
    return "\(sign) \(SpotTable(rows: [SpotRow(spot)], columns: nil, hasHeader: false))"
  }
}
