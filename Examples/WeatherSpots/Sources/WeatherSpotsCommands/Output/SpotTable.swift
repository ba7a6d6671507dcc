import Foundation
import Larder
import WeatherSpotsKit

/// Spots as lines of columns, for people.
struct SpotTable: CustomStringConvertible {
  let rows: [SpotRow]
  var style = TextStyle.plain

  var description: String {
    guard !rows.isEmpty else { return "No spots.\n" }
    let longest = rows.map(\.spot.name.withoutControls.columns).max() ?? 0
    // On a narrow terminal the numbers beside the name are worth more than the end of a long one.
    let width = min(40, longest, max(12, (Output.columns() ?? 1000) - 45))
    return rows.map { line($0, width) }.joined()
  }

  private func line(_ row: SpotRow, _ width: Int) -> String {
    let spot = row.spot
    let showsName = row.extract?.text == spot.name
    let name = spot.name.withoutControls
    var line = showsName ? style.marked(row.extract) : name
    if Output.columns() != nil, name.columns > width { line = line.fitted(toColumns: width, mark: "…") }
    line += String(repeating: " ", count: max(0, width - name.columns))
    if let kilometers = row.kilometers { line += "  \(Self.pad(kilometers.text(decimals: 1), 8)) km" }
    line += "  \(Self.pad(spot.latitude.text(decimals: 4), 8))  \(Self.pad(spot.longitude.text(decimals: 4), 9))  \(spot.timezone)"
    line += (spot.country.isEmpty ? "" : "  \(spot.country)") + (spot.kind.isEmpty ? "" : "  \(spot.kind)")
    line += spot.rating == 0 ? "" : "  " + String(repeating: "*", count: spot.rating)
    line += spot.tags.isEmpty ? "" : "  " + spot.tags.map { "#\($0)" }.joined(separator: " ")
    line += spot.visits == 0 ? "" : "  \(counted(spot.visits, "visit"))"
    if row.extract != nil, !showsName { line += "\n    \(style.marked(row.extract).replacing("\n", with: " "))" }
    return line + "\n"
  }

  private static func pad(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
}
