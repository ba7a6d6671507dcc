internal import Foundation
@_spi(Inspection) internal import Larder

/// A file of comma-separated values (RFC 4180), whose first line names the members.
enum CSVSource {
  /// Reads all rows as objects.
  ///
  /// A column is of numbers, or of true and false, where all its values are; empty ones are left out. Otherwise it is of texts.
  /// - Parameters:
  ///   - id: The name of a column that must be there.
  ///   - idType: The type of the ids, if it is given: digits in their column are a text for an app with texts as ids.
  ///   - isText: Whether every column is of texts, and empty values are kept.
  /// - Throws: `.decodingFailed` with the line for a row that is not as it must be, for a header without the column, and for another
  ///   encoding than UTF-8.
  static func read(_ path: String, id: String, idType: IDType? = nil, isText: Bool) throws(RepositoryError) -> [ImportedRecord] {
    let bytes = try ImportBytes.read(path)
    // Excel's "Unicode Text", with its byte order mark or without.
    guard !bytes.starts(with: [0xFF, 0xFE]), !bytes.starts(with: [0xFE, 0xFF]), !bytes.contains(0) else {
      throw RepositoryError(.decodingFailed, "expected UTF-8, found UTF-16 or bytes of zero: save the file as CSV in UTF-8", file: path)
    }
    var rows = CSVRows(bytes, file: path)
    guard let header = try rows.next() else {
      throw RepositoryError(.decodingFailed, "expected a header line, found an empty file", file: path)
    }
    if !bytes.contains(UInt8(ascii: "\n")), !bytes.contains(UInt8(ascii: "\r")) { try checkLineEnds(header, path) }
    try check(header, id, path)
    for (column, name) in header.fields.enumerated() where name.isEmpty || header.fields[..<column].contains(name) {
      // Without a header the first line is a record: the text is not named.
      throw RepositoryError(
        .decodingFailed,
        "line \(header.line): expected a name of its own for each column, found \(name.isEmpty ? "none" : "an earlier one") in column "
          + "\(column + 1)", file: path)
    }
    var found: [CSVRows.Row] = []
    while let row = try rows.next() {
      guard row.fields.count == header.fields.count else {
        throw RepositoryError(
          .decodingFailed, "line \(row.line): expected \(header.fields.count) fields as in the header, found \(row.fields.count)",
          file: path)
      }
      found.append(row)
    }
    let hasTextIDs = idType != nil && idType != .integer
    let kinds = header.fields.enumerated().map { column, name in
      isText || (hasTextIDs && name == id) ? .text : Kind(of: found.lazy.map { $0.fields[column] })
    }
    return found.map { row in
      var object = JSONObject()
      for (column, name) in header.fields.enumerated() { object[name] = kinds[column].value(row.fields[column], keepsEmpty: isText) }
      return ImportedRecord(value: .object(object), file: path, line: row.line)
    }
  }

  /// Refuses a file without an end of line of CSV whose only line has a character that ends lines in other programs.
  private static func checkLineEnds(_ header: CSVRows.Row, _ path: String) throws(RepositoryError) {
    for scalar in header.fields.lazy.flatMap(\.unicodeScalars) where lineEnds.contains(scalar) {
      let code = String(scalar.value, radix: 16, uppercase: true)
      throw RepositoryError(
        .decodingFailed,
        "line \(header.line): expected lines that end with LF, CR LF or CR, found U+\(String(repeating: "0", count: 4 - code.count))\(code) "
          + "in the header: save the file with one of them", file: path)
    }
  }

  /// The separators of lines and records that CSV does not have.
  private static let lineEnds: Set<Unicode.Scalar> = ["\u{B}", "\u{C}", "\u{1E}", "\u{85}", "\u{2028}", "\u{2029}"]

  /// Refuses a header that does not name the column of the ids.
  ///
  /// Without a header the first line is a record. So a text of it is named only where it holds the name that is looked for, or is near it.
  private static func check(_ header: CSVRows.Row, _ id: String, _ path: String) throws(RepositoryError) {
    let fields = header.fields
    guard !fields.contains(id) else { return }
    var found = "\(counted(fields.count, "column")) of other names"
    // Two letters are near every short text.
    var hint = NearestName.question(about: id, among: fields.filter { $0.count > 3 || $0.lowercased() == id.lowercased() })
    if fields.count == 1, let (mark, name) = separators.first(where: { fields[0].contains($0.mark) }) {
      let isNamed = fields[0].split(separator: mark).contains { $0.lowercased() == id.lowercased() }
      found =
        isNamed ? "one column named \"\(TerminalText.escaped(String(fields[0].prefix(200))))\"" : "one column with \(name) in its name"
      hint = "; is the separator \(name)? Write the file with commas"
    }
    throw RepositoryError(
      .decodingFailed, "line \(header.line): expected a column named \"\(TerminalText.escaped(id))\", found \(found)\(hint)", file: path)
  }

  /// The marks that other programs write in place of commas, and their names.
  private static let separators: [(mark: Character, name: String)] = [(";", "\";\""), ("\t", "a tab"), ("|", "\"|\"")]

  /// The kinds of columns.
  private enum Kind {
    case number, truth, text

    init(of values: some Sequence<String>) {
      var kinds: Set<Kind> = []
      for value in values where !value.isEmpty {
        kinds.insert(value == "true" || value == "false" ? .truth : JSONNumber(text: value) != nil ? .number : .text)
      }
      self = kinds.count == 1 ? kinds.first ?? .text : .text
    }

    func value(_ text: String, keepsEmpty: Bool) -> JSONValue? {
      if text.isEmpty { return keepsEmpty ? "" : nil }
      switch self {
      case .number: return JSONNumber(text: text).map { .number($0) }
      case .truth: return JSONValue(text == "true")
      case .text: return JSONValue(text)
      }
    }
  }
}
