internal import Foundation
@_spi(Inspection) internal import Larder

/// A file of comma-separated values (RFC 4180), whose first line names the members.
enum CSVSource {
  /// Reads all rows as objects.
  ///
  /// A column is of numbers, or of true and false, where all its values are; empty ones are left out. Otherwise it is of texts.
  /// - Parameter isText: Whether every column is of texts, and empty values are kept.
  /// - Throws: `.decodingFailed` with the line for a row that is not as it must be.
  static func read(_ path: String, isText: Bool) throws(RepositoryError) -> [ImportedRecord] {
    var rows = CSVRows(try ImportBytes.read(path), file: path)
    guard let header = try rows.next() else {
      throw RepositoryError(.decodingFailed, "expected a header line, found an empty file", file: path)
    }
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
    let kinds = header.fields.indices.map { column in isText ? .text : Kind(of: found.lazy.map { $0.fields[column] }) }
    return found.map { row in
      var object = JSONObject()
      for (column, name) in header.fields.enumerated() { object[name] = kinds[column].value(row.fields[column], keepsEmpty: isText) }
      return ImportedRecord(value: .object(object), file: path, line: row.line)
    }
  }

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

/// The rows of a file of comma-separated values.
struct CSVRows {
  /// A row, and the line at which it begins.
  struct Row {
    var fields: [String]
    let line: Int
  }

  private let bytes: [UInt8]
  private let file: String
  private var position: Int
  private var line = 1

  init(_ bytes: [UInt8], file: String) {
    self.bytes = bytes
    self.file = file
    position = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
  }

  /// Reads the next row, past empty lines; `nil` at the end.
  mutating func next() throws(RepositoryError) -> Row? {
    while takeLineEnd() {}
    guard position < bytes.count else { return nil }
    var row = Row(fields: [], line: line)
    while true {
      row.fields.append(try field())
      guard position < bytes.count, !takeLineEnd() else { return row }
      position += 1  // the comma, since a field ends before nothing else
    }
  }

  private mutating func takeLineEnd() -> Bool {
    guard position < bytes.count else { return false }
    if bytes[position] == UInt8(ascii: "\r"), position + 1 < bytes.count, bytes[position + 1] == UInt8(ascii: "\n") { position += 1 }
    guard bytes[position] == UInt8(ascii: "\n") else { return false }
    position += 1
    line += 1
    return true
  }

  private mutating func field() throws(RepositoryError) -> String {
    guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else { return try plainField() }
    let start = line
    position += 1
    var text: [UInt8] = []
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      if byte == UInt8(ascii: "\n") { line += 1 }
      guard byte == UInt8(ascii: "\"") else {
        text.append(byte)
        continue
      }
      if position < bytes.count, bytes[position] == UInt8(ascii: "\"") {
        text.append(byte)
        position += 1
      } else {
        let ends = position == bytes.count || bytes[position] == UInt8(ascii: ",") || isLineEnd
        guard ends else { throw fault("expected a comma or the end of the line behind a closing quotation mark", start) }
        return try decoded(text)
      }
    }
    throw fault("expected a closing quotation mark, found the end of the file", start)
  }

  private var isLineEnd: Bool {
    bytes[position] == UInt8(ascii: "\n")
      || bytes[position] == UInt8(ascii: "\r") && position + 1 < bytes.count && bytes[position + 1] == UInt8(ascii: "\n")
  }

  private mutating func plainField() throws(RepositoryError) -> String {
    let start = position
    while position < bytes.count, bytes[position] != UInt8(ascii: ","), !isLineEnd {
      if bytes[position] == UInt8(ascii: "\"") { throw fault("expected quotation marks around a field that holds one", line) }
      position += 1
    }
    return try decoded(Array(bytes[start..<position]))
  }

  private func decoded(_ text: [UInt8]) throws(RepositoryError) -> String {
    guard let text = String(validating: text, as: UTF8.self) else { throw fault("expected UTF-8, found other bytes", line) }
    return text
  }

  private func fault(_ message: String, _ line: Int) -> RepositoryError {
    RepositoryError(.decodingFailed, "line \(line): \(message)", file: file)
  }
}
