import Larder
import WeatherSpotsKit

/// A change of a spot as those see it who look at the spots of a filter.
struct SpotNews: Encodable {
  let change: String
  let spot: Spot

  /// Makes the news of a change; `nil` where those see none.
  init?(_ change: ChangeSet<Spot>.Change, _ filter: SpotFilter = SpotFilter()) {
    let old = change.old.flatMap { filter.contains($0) ? $0 : nil }
    let new = change.new.flatMap { filter.contains($0) ? $0 : nil }
    guard let spot = new ?? old, old != new else { return nil }
    self.spot = spot
    self.change = old == nil ? "added" : new == nil ? "removed" : "changed"
  }

  var text: String {
    let sign = change == "added" ? "+" : change == "removed" ? "-" : "~"
    return "\(sign) \(SpotTable(rows: [SpotRow(spot)], columns: nil, hasHeader: false))"
  }
}
