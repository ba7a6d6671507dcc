internal import Foundation
@_spi(Inspection) internal import Larder

/// Import source: a file of comma-separated values (RFC 4180) whose first line has the names of the members.
enum CSVSource {
  /// Reads all rows as objects with the columns as members.
  ///
  /// A column holds numbers, or true and false, if all its values do, and empty values are left out. Otherwise it holds texts.
  /// - Parameters:
  ///   - id: Name of the column with the ids, which must exist.
  ///   - idType: Type of the ids. With `.text` or `.uuid`, digits in the column of the ids are read as text.
  ///   - isText: Whether every column holds texts, and empty values are kept.
  /// - Throws: `.decodingFailed` with the line for a row with another number of fields, for a header without the column of the ids, and for
  ///   an encoding other than UTF-8.
  static func read(_ path: String, id: String, idType: IDType? = nil, isText: Bool) throws(RepositoryError) -> [ImportedRecord] {
    let bytes = try ImportBytes.read(path)
    // Excel's "Unicode Text" is UTF-16, with a byte order mark or without. UTF-16 of Latin letters has bytes of zero.
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
      // Without a header, the first line is a record, whose text must not appear in an error. Only the column's number does.
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
    // An app with `String` ids finds "007" under that text, and not under the number 7.
    let hasTextIDs = idType != nil && idType != .integer
    // The kind of a column is known only after its last row.
    let kinds = header.fields.enumerated().map { column, name in
      isText || (hasTextIDs && name == id) ? .text : Kind(of: found.lazy.map { $0.fields[column] })
    }
    return found.map { row in
      var object = JSONObject()
      for (column, name) in header.fields.enumerated() { object[name] = kinds[column].value(row.fields[column], keepsEmpty: isText) }
      return ImportedRecord(value: .object(object), file: path, line: row.line)
    }
  }

  /// Refuses a file without LF and CR whose single line has a line separator of other programs.
  ///
  /// The whole file would be taken for the header, and the import would succeed with no records.
  private static func checkLineEnds(_ header: CSVRows.Row, _ path: String) throws(RepositoryError) {
    for scalar in header.fields.lazy.flatMap(\.unicodeScalars) where lineEnds.contains(scalar) {
      let code = String(scalar.value, radix: 16, uppercase: true)
      throw RepositoryError(
        .decodingFailed,
        "line \(header.line): expected lines that end with LF, CR LF or CR, found U+\(String(repeating: "0", count: 4 - code.count))\(code) "
          + "in the header: save the file with one of them", file: path)
    }
  }

  /// Characters that separate lines or records in other programs, and not in CSV.
  private static let lineEnds: Set<Unicode.Scalar> = ["\u{B}", "\u{C}", "\u{1E}", "\u{85}", "\u{2028}", "\u{2029}"]

  /// Checks that the header has the column of the ids.
  ///
  /// Without a header, the first line is a record. The error therefore shows a field only if it contains the name of the column or
  /// resembles it.
  private static func check(_ header: CSVRows.Row, _ id: String, _ path: String) throws(RepositoryError) {
    let fields = header.fields
    guard !fields.contains(id) else { return }
    var found = "\(counted(fields.count, "column")) of other names"
    // Fields of up to three letters resemble almost every short name.
    var hint = NearestName.question(about: id, among: fields.filter { $0.count > 3 || $0.lowercased() == id.lowercased() })
    if fields.count == 1, let (mark, name) = separators.first(where: { fields[0].contains($0.mark) }) {
      let isNamed = fields[0].split(separator: mark).contains { $0.lowercased() == id.lowercased() }
      found =
        isNamed ? "one column named \"\(TerminalText.escaped(String(fields[0].prefix(200))))\"" : "one column with \(name) in its name"
      // One column means that the line has no comma, so another separator is likely.
      hint = "; is the separator \(name)? Write the file with commas"
    }
    throw RepositoryError(
      .decodingFailed, "line \(header.line): expected a column named \"\(TerminalText.escaped(id))\", found \(found)\(hint)", file: path)
  }

  /// Separators that other programs write in place of commas, with their names for errors.
  private static let separators: [(mark: Character, name: String)] = [(";", "\";\""), ("\t", "a tab"), ("|", "\"|\"")]

  /// Type of the values of a column.
  private enum Kind {
    case number, truth, text

    init(of values: some Sequence<String>) {
      var kinds: Set<Kind> = []
      // An empty field has no value in a column of numbers, and must not turn the column into texts.
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
