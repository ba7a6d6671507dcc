// CSV/ reads and writes RFC 4180 files. A library would be enough for the values alone. This reader exists because a bad row must be
// reported with the line and the column that a text editor shows.

/// A reader of RFC 4180 files that returns one record at a time, with the position of each field.
///
/// Quoted fields may hold commas, quotation marks and line ends. Lines end with LF, CRLF or CR. A byte order mark is skipped, and so are
/// empty lines. After a malformed record the reader continues on the next line, so that one pass reports every fault. A quoted field
/// without a closing quotation mark extends to the end of the file.
public struct CSVReader: Sequence, IteratorProtocol {
  /// One record of a CSV file and its position.
  public struct Record: Sendable {
    /// Values of the fields, without their quotation marks.
    public let fields: [String]
    /// Number of the line on which the record starts, from 1.
    public let line: Int
    fileprivate let start: Int
    fileprivate let offsets: [Int]
  }

  private let bytes: [UInt8]
  private var line = 1
  /// Number of bytes that the reader has consumed.
  public private(set) var position = 0
  /// Size of the file, in bytes.
  public var byteCount: Int { bytes.count }

  /// Creates a reader for the bytes of a whole file.
  public init(_ bytes: [UInt8]) {
    self.bytes = bytes
    // Spreadsheets write a byte order mark. Left in, it would become part of the first column's name.
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
  }

  /// Returns the next record or the fault in it, or `nil` at the end of the file.
  public mutating func next() -> Result<Record, RowProblem>? {
    while skipLineEnd() {}
    guard position < bytes.count else { return nil }
    let start = position
    // A quoted field moves `self.line` forward. A record is reported at its first line.
    let line = line
    var fields: [String] = []
    var offsets: [Int] = []
    do throws(Fault) {
      repeat {
        if !offsets.isEmpty { position += 1 }  // the comma
        offsets.append(position)
        fields.append(try field())
      } while position < bytes.count && bytes[position] == Byte.comma
    } catch {
      // With the line of the record's start, because `problem` adds the line ends between there and the offset.
      let problem = problem(at: error.offset, from: start, line: line, error.reason)
      skipLine()
      return .failure(problem)
    }
    _ = skipLineEnd()
    return .success(Record(fields: fields, line: line, start: start, offsets: offsets))
  }

  /// Returns a problem at the position of one field of a record.
  ///
  /// An index past the last field is reported at the last field.
  public func problem(in record: Record, field: Int, _ reason: String) -> RowProblem {
    let offset = record.offsets.indices.contains(field) ? record.offsets[field] : record.offsets.last ?? record.start
    return problem(at: offset, from: record.start, line: record.line, reason)
  }

  private struct Fault: Error {
    let offset: Int
    let reason: String
  }

  private mutating func field() throws(Fault) -> String {
    if position < bytes.count, bytes[position] == Byte.quote { return try quotedField() }
    let start = position
    while position < bytes.count, bytes[position] != Byte.comma, !isLineEnd(at: position) {
      if bytes[position] == Byte.quote {
        throw Fault(offset: position, reason: "quotation mark inside a field that does not start with one")
      }
      position += 1
    }
    // `String(decoding:as:)` would store U+FFFD in place of the user's text, for example of a Latin-1 file.
    guard let text = String(validating: bytes[start..<position], as: UTF8.self) else { throw Fault(offset: start, reason: "not UTF-8") }
    return text
  }

  private mutating func quotedField() throws(Fault) -> String {
    let opening = position
    position += 1
    var text: [UInt8] = []
    while true {
      guard position < bytes.count else { throw Fault(offset: opening, reason: "quotation mark without an end") }
      let byte = bytes[position]
      // Line ends inside quotation marks count too, or every later problem would name a line too far up.
      if endsLine(at: position) { line += 1 }
      position += 1
      if byte == Byte.quote {
        // Two quotation marks in a row are one of the value (RFC 4180, section 2, rule 7).
        guard position < bytes.count, bytes[position] == Byte.quote else { break }
        position += 1
      }
      text.append(byte)
    }
    if position < bytes.count, bytes[position] != Byte.comma, !isLineEnd(at: position) {
      let mark = bytes[position]
      let hint = Byte.isSeparatorElsewhere(mark) ? "; \(Byte.hint(onSeparator: mark))" : ""
      throw Fault(offset: position, reason: "text after the closing quotation mark\(hint)")
    }
    guard let text = String(validating: text, as: UTF8.self) else { throw Fault(offset: opening, reason: "not UTF-8") }
    return text
  }

  private func isLineEnd(at offset: Int) -> Bool { bytes[offset] == Byte.newline || bytes[offset] == Byte.carriageReturn }

  /// Whether the byte at an offset is the last one of a line end, which for CRLF is the LF.
  private func endsLine(at offset: Int) -> Bool {
    if bytes[offset] == Byte.newline { return true }
    return bytes[offset] == Byte.carriageReturn && (offset + 1 == bytes.count || bytes[offset + 1] != Byte.newline)
  }

  private mutating func skipLineEnd() -> Bool {
    guard position < bytes.count, isLineEnd(at: position) else { return false }
    position += endsLine(at: position) ? 1 : 2
    line += 1
    return true
  }

  private mutating func skipLine() {
    while position < bytes.count, !isLineEnd(at: position) { position += 1 }
    _ = skipLineEnd()
  }

  private func problem(at offset: Int, from start: Int, line: Int, _ reason: String) -> RowProblem {
    // A fault can lie some lines below the start of its record, behind a quoted field with line ends.
    let ends = (start..<offset).filter(endsLine)
    let (lineStart, lines) = (ends.last.map { $0 + 1 } ?? start, ends.count)
    // Editors count characters, so a column counted in bytes would be too large after an accented letter.
    return RowProblem(line: line + lines, column: String(decoding: bytes[lineStart..<offset], as: UTF8.self).count + 1, reason: reason)
  }
}

/// An error for an invalid row of a CSV file, with its line and column.
public struct RowProblem: Error, Hashable, Codable, Sendable, CustomStringConvertible {
  /// Line number, from 1.
  public let line: Int
  /// Position in the line, counted in characters from 1.
  public let column: Int
  /// Description of the fault, without the position.
  public let reason: String

  /// The problem in the form LINE:COLUMN: REASON.
  public var description: String { "\(line):\(column): \(reason)" }
}

enum Byte {
  static let quote = UInt8(ascii: "\"")
  static let comma = UInt8(ascii: ",")
  static let newline = UInt8(ascii: "\n")
  static let carriageReturn = UInt8(ascii: "\r")

  /// Whether a byte is a field separator of other dialects of CSV: a semicolon, a tab or a vertical bar.
  static func isSeparatorElsewhere(_ byte: UInt8) -> Bool { ";\t|".utf8.contains(byte) }

  /// Returns a separator as an error message shows it.
  static func label(ofSeparator byte: UInt8) -> String { byte == UInt8(ascii: "\t") ? "a tab" : String(UnicodeScalar(byte)) }

  /// Returns the advice for a file whose fields are separated by another character than a comma.
  static func hint(onSeparator byte: UInt8) -> String { "is \(label(ofSeparator: byte)) the separator? Write the file with commas" }

  /// Whether a byte may occur in a decimal number.
  static func isOfDecimal(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) || "+-.eE".utf8.contains(byte) }
}
