internal import Larder

/// Parser of the rows of a file of comma-separated values.
///
/// A line ends with LF, CR LF, or CR alone, and a file may mix them. Within quotation marks, a line end is a part of the field.
struct CSVRows {
  /// Fields of a row, and the number of the line at which the row begins.
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
    // Excel writes a byte order mark, which would become a part of the first column's name.
    position = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
  }

  /// Reads the next row, skipping empty lines.
  ///
  /// Returns `nil` at the end of the file.
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
    guard position < bytes.count, isLineEnd else { return false }
    // CR LF is one line end. Counted as two, the line numbers of all later errors would be wrong.
    position += isCarriageReturnAndLineFeed ? 2 : 1
    line += 1
    return true
  }

  private mutating func field() throws(RepositoryError) -> String {
    guard position < bytes.count, bytes[position] == UInt8(ascii: "\"") else { return try plainField() }
    let start = line
    position += 1
    var text: [UInt8] = []
    while position < bytes.count {
      // A field may hold line ends, which count for the line numbers of later rows.
      if isLineEnd, !isCarriageReturnAndLineFeed { line += 1 }
      let byte = bytes[position]
      position += 1
      guard byte == UInt8(ascii: "\"") else {
        text.append(byte)
        continue
      }
      // Two quotation marks within a quoted field stand for one (RFC 4180, section 2, rule 7).
      if position < bytes.count, bytes[position] == UInt8(ascii: "\"") {
        text.append(byte)
        position += 1
      } else {
        // Text after the closing mark usually means another separator. Joining it to the field would hide that.
        let ends = position == bytes.count || bytes[position] == UInt8(ascii: ",") || isLineEnd
        guard ends else {
          let isMark = ";\t|".utf8.contains(bytes[position])
          let found = isMark ? ", found \"\(TerminalText.escaped(String(UnicodeScalar(bytes[position]))))\"" : ""
          let hint = isMark ? "; is it the separator? Write the file with commas" : ""
          throw fault("expected a comma or the end of the line behind a closing quotation mark\(found)\(hint)", start)
        }
        return try decoded(text)
      }
    }
    throw fault("expected a closing quotation mark, found the end of the file", start)
  }

  private var isLineEnd: Bool { bytes[position] == UInt8(ascii: "\n") || bytes[position] == UInt8(ascii: "\r") }

  private var isCarriageReturnAndLineFeed: Bool {
    bytes[position] == UInt8(ascii: "\r") && position + 1 < bytes.count && bytes[position + 1] == UInt8(ascii: "\n")
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
    // Invalid bytes are refused. Repairing them would store U+FFFD in place of the letters of a Latin-1 file.
    guard let text = String(validating: text, as: UTF8.self) else {
      throw fault("expected UTF-8, found other bytes; is it Latin-1 or Windows-1252? Save the file as CSV in UTF-8", line)
    }
    return text
  }

  private func fault(_ message: String, _ line: Int) -> RepositoryError {
    RepositoryError(.decodingFailed, "line \(line): \(message)", file: file)
  }
}
