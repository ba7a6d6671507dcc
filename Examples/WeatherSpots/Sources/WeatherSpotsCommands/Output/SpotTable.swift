import Foundation
import Larder
import WeatherSpotsKit

/// Table of spots in aligned columns, for people.
struct SpotTable: CustomStringConvertible {
  let rows: [SpotRow]
  var style = TextStyle.plain
  /// Maximum width of a line, or `nil` for lines of any length, as in a pipe.
  var columns = Output.columns()
  /// Whether the first line names the columns.
  ///
  /// A pipe has no such line, so that `wc -l` counts the spots.
  var hasHeader = Output.columns() != nil || isatty(STDOUT_FILENO) == 1

  /// Columns of the table, from left to right.
  private enum Column: String, CaseIterable {
    case name, distance, latitude, longitude, zone, country, kind, rating, tags, visits

    /// Groups of columns that are left out of a narrow table, in this order.
    static let dispensable: [Set<Column>] = [[.zone], [.visits], [.tags], [.latitude, .longitude], [.rating], [.kind], [.country]]

    var isNumber: Bool { [.distance, .latitude, .longitude].contains(self) }

    /// Minimum width, so that the lines of separately written spots align.
    var least: Int { self == .latitude ? 8 : self == .longitude ? 9 : 0 }

    func text(of row: SpotRow) -> String {
      let spot = row.spot
      return switch self {
      case .name: spot.name.withoutControls
      case .distance: row.kilometers.map { "\($0.text(decimals: 1)) km" } ?? ""
      case .latitude: spot.latitude.text(decimals: 4)
      case .longitude: spot.longitude.text(decimals: 4)
      case .zone: spot.timezone
      case .country: spot.country
      case .kind: spot.kind
      case .rating: String(repeating: "*", count: spot.rating)
      case .tags: spot.tags.map { "#\($0)" }.joined(separator: " ")
      case .visits: spot.visits == 0 ? "" : counted(spot.visits, "visit")
      }
    }
  }

  /// A visible column with its cells and its width.
  private struct Shown {
    let column: Column
    let cells: [String]
    var width: Int

    /// Returns a cell padded to the column's width, on the left for numbers.
    func cell(_ text: String) -> String {
      let blanks = String(repeating: " ", count: max(0, width - Self.columns(of: text)))
      return column.isNumber ? blanks + text : text + blanks
    }

    /// Returns the width of a text without the escape sequences of colors.
    private static func columns(of text: String) -> Int {
      // Few cells have colors, and the check of the bytes spares the others the regular expression.
      text.utf8.contains(0x1B) ? text.replacing(/\u{1B}\[[0-9;]*m/, with: "").columns : text.columns
    }
  }

  var description: String {
    guard !rows.isEmpty else { return "No spots.\n" }
    var all = Column.allCases.compactMap(shown)
    let count = all.count
    if let columns, let longest = all.first?.width {
      // The header ends in an ellipsis of three columns if columns are left out.
      func room() -> Int { columns - (hasHeader && all.count < count ? 3 : 0) - all.dropFirst().reduce(0) { $0 + 2 + $1.width } }
      // Columns go until 16 columns are left for the name: the end of a longer name is worth less than they are.
      for group in Column.dispensable where room() < min(longest, 16) { all.removeAll { group.contains($0.column) } }
      all[0].width = min(longest, max(room(), 8))
    }
    let ellipsis = all.count < count ? "  …" : ""
    let header = hasHeader ? [line(all.map { $0.cell($0.column.rawValue.capitalized) }) + ellipsis] : []
    return (header + rows.indices.map { lines(of: $0, all) }).map { $0 + "\n" }.joined()
  }

  /// Returns a column as wide as its widest cell, or `nil` if all its cells are empty.
  private func shown(_ column: Column) -> Shown? {
    let cells = rows.map(column.text)
    guard let longest = cells.map(\.columns).max(), longest > 0 else { return nil }
    return Shown(column: column, cells: cells, width: max(longest, column.least, hasHeader ? column.rawValue.count : 0))
  }

  private func line(_ cells: [String]) -> String {
    let line = cells.joined(separator: "  ")
    // Trailing blanks would wrap on a narrow terminal and show up in a diff.
    return String(line[..<(line.lastIndex { $0 != " " }.map(line.index(after:)) ?? line.startIndex)])
  }

  /// Returns the line of a spot, followed by the search extract if that is not from its name.
  private func lines(of index: Int, _ all: [Shown]) -> String {
    let row = rows[index]
    let showsName = row.extract?.text == row.spot.name
    let line = line(
      all.map { shown in
        guard shown.column == .name else { return shown.cell(shown.cells[index]) }
        let name = showsName ? style.marked(row.extract) : shown.cells[index]
        return shown.cell(columns == nil ? name : name.fitted(toColumns: shown.width))
      })
    guard row.extract != nil, !showsName else { return line }
    return "\(line)\n    \(style.marked(row.extract).replacing("\n", with: " "))"
  }
}
