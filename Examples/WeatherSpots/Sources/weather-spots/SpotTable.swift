import Foundation
import Larder
import WeatherSpotsKit

/// One spot of a list, with what the question has found out about it.
struct SpotRow: Encodable {
  let spot: Spot
  var kilometers: Double?
  var extract: TextExtract?

  init(_ spot: Spot, kilometers: Double? = nil, extract: TextExtract? = nil) {
    self.spot = spot
    self.kilometers = kilometers
    self.extract = extract
  }

  private enum CodingKeys: CodingKey { case distanceKm, extract, highlights }

  func encode(to encoder: any Encoder) throws {
    try spot.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(kilometers.map { ($0 * 1000).rounded() / 1000 }, forKey: .distanceKm)
    try container.encodeIfPresent(extract?.text, forKey: .extract)
    try container.encodeIfPresent(extract?.highlights.map { [$0.lowerBound, $0.upperBound] }, forKey: .highlights)
  }
}

/// Spots as lines of columns, for people.
struct SpotTable: CustomStringConvertible {
  let rows: [SpotRow]
  var style = TextStyle.plain

  var description: String {
    guard !rows.isEmpty else { return "No spots.\n" }
    let width = min(40, rows.map(\.spot.name.count).max() ?? 0)
    return rows.map { line($0, width) }.joined()
  }

  private func line(_ row: SpotRow, _ width: Int) -> String {
    let spot = row.spot
    let showsName = row.extract?.text == spot.name
    var line = showsName ? style.marked(row.extract) : spot.name
    line += String(repeating: " ", count: max(0, width - spot.name.count))
    if let kilometers = row.kilometers { line += "  \(Self.pad(kilometers.text(decimals: 1), 8)) km" }
    line += "  \(Self.pad(spot.latitude.text(decimals: 4), 8))  \(Self.pad(spot.longitude.text(decimals: 4), 9))  \(spot.timezone)"
    line += (spot.country.isEmpty ? "" : "  \(spot.country)") + (spot.kind.isEmpty ? "" : "  \(spot.kind)")
    line += spot.rating == 0 ? "" : "  " + String(repeating: "*", count: spot.rating)
    if row.extract != nil, !showsName { line += "\n    \(style.marked(row.extract))" }
    return line + "\n"
  }

  private static func pad(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
}
