/// A table of aligned columns for a terminal, or of Markdown for a page.
package struct TextTable: Sendable {
  private let header: [String]
  private var rows: [[String]] = []

  package init(_ header: [String]) { self.header = header }

  package mutating func add(_ row: [String]) { rows.append(row) }

  /// Returns the table with its columns below each other, the first one to the left and the others to the right.
  package var plain: String {
    let all = [header] + rows
    let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      row.indices.map { column in
        let space = String(repeating: " ", count: widths[column] - row[column].count)
        return column == 0 ? row[column] + space : space + row[column]
      }.joined(separator: "  ")
    }.joined(separator: "\n")
  }

  package var markdown: String {
    let rule = header.indices.map { $0 == 0 ? "---" : "---:" }
    let all = [header.map(Self.escaped), rule] + rows.map { $0.map(Self.escaped) }
    return all.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
  }

  private static func escaped(_ text: String) -> String {
    text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
  }
}

extension ScenarioReport {
  /// The table of the scenario: one contender a row.
  package var table: TextTable {
    let hasSizes = series.contains { $0.size != nil }
    var table = TextTable(
      [operation] + (hasSizes ? ["size"] : []) + ["median", "a second"] + (base == nil ? [] : ["times \(base ?? "")", "quartiles"]))
    for one in series {
      var row = [one.name] + (hasSizes ? [one.size.map(Figures.count) ?? ""] : [])
      row += [Figures.text(one.median, one.unit), one.rate.map { Figures.digits($0) } ?? ""]
      if base != nil {
        let ratio = ratio(of: one)
        row += [ratio.map { Figures.digits($0.median) } ?? ""]
        row += [ratio.map { "\(Figures.digits($0.lowerQuartile)) – \(Figures.digits($0.upperQuartile))" } ?? ""]
      }
      table.add(row)
    }
    return table
  }
}
