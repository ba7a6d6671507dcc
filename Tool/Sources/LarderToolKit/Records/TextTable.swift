/// Table with aligned columns, for a terminal.
package struct TextTable: Sendable {
  private let titles: [String]
  private var rows: [[Cell]] = []

  /// Cell of a table.
  ///
  /// Numbers are aligned to the right, texts to the left.
  package struct Cell: Sendable {
    let text: String
    let isNumber: Bool

    /// Creates a cell with a text, whose control characters are escaped.
    package init(_ text: String) { (self.text, isNumber) = (TerminalText.escaped(text), false) }
    /// Creates a cell with a number that is already formatted.
    package init(number text: String) { (self.text, isNumber) = (text, true) }
  }

  /// Creates a table without rows.
  package init(_ titles: [String]) { self.titles = titles.map(TerminalText.escaped) }

  /// Adds a row with one cell for each title.
  package mutating func add(_ cells: [Cell]) { rows.append(cells) }

  private static let gap = 2
  /// Width in columns below which no column is cut.
  private static let leastWidth = 6

  /// Returns the line of titles, then a line for each row.
  /// - Parameter width: Columns of the terminal. With `nil`, nothing is cut.
  package func lines(width: Int?) -> [String] {
    var widths = titles.indices.map { column in
      rows.reduce(TerminalText.width(of: titles[column])) { max($0, TerminalText.width(of: $1[column].text)) }
    }
    if let width {
      // The widest column is cut first, because it is usually the one with long texts.
      while widths.reduce(0, +) + Self.gap * (widths.count - 1) > width, let widest = widths.indices.max(by: { widths[$0] < widths[$1] }),
        widths[widest] > Self.leastWidth
      { widths[widest] -= 1 }
    }
    return ([titles.map { Cell($0) }] + rows).enumerated().map { index, row in
      let line = row.enumerated().map { column, cell in
        let isRight = index == 0 ? rows.first?[column].isNumber == true : cell.isNumber
        return Self.padded(cell.text, to: widths[column], isRight: isRight)
      }.joined(separator: String(repeating: " ", count: Self.gap))
      // Padding at the end of a line would wrap in a narrow terminal.
      let text = String(line.reversed().drop { $0 == " " }.reversed())
      // With many columns the least widths may still exceed the terminal, and then the line is cut.
      return width.map { TerminalText.cut(text, to: $0) } ?? text
    }
  }

  private static func padded(_ text: String, to width: Int, isRight: Bool) -> String {
    let text = TerminalText.cut(text, to: width)
    let space = String(repeating: " ", count: max(0, width - TerminalText.width(of: text)))
    return isRight ? space + text : text + space
  }
}
