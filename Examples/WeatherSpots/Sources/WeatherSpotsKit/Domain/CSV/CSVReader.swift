// CSV/ reads and writes RFC 4180 files. A library would do for the values alone; this reader is here because a bad row has to be
// reported with the line and column at which a person finds it in an editor.

import Foundation

/// The records of an RFC 4180 file, read one by one: quoted fields may hold commas, quotes and line ends.
///
/// Lines end with LF, CRLF or CR, a byte order mark is skipped, and empty lines are no records. A record that breaks the rules is reported
/// and reading goes on after its line, so that one pass finds every fault.
public struct CSVReader: Sequence, IteratorProtocol {
  /// One record and where it stands.
  public struct Record: Sendable {
    /// The values, unquoted.
    public let fields: [String]
    /// The line on which it starts, from 1.
    public let line: Int
    fileprivate let start: Int
    fileprivate let offsets: [Int]
  }

  private let bytes: [UInt8]
  private var line = 1
  /// The number of bytes that have been read.
  public private(set) var position = 0
  /// The size of the file, in bytes.
  public var byteCount: Int { bytes.count }

  /// Makes a reader of a whole file.
  public init(_ bytes: [UInt8]) {
    self.bytes = bytes
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
  }

  /// Returns the next record, or what is wrong with it; `nil` at the end.
  public mutating func next() -> Result<Record, RowProblem>? {
    while skipLineEnd() {}
    guard position < bytes.count else { return nil }
    let start = position
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
      let problem = problem(at: error.offset, from: start, line: line, error.reason)
      skipLine()
      return .failure(problem)
    }
    _ = skipLineEnd()
    return .success(Record(fields: fields, line: line, start: start, offsets: offsets))
  }

  /// Returns the problem of a field of a record; a position past the last field means the end of the record.
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
      if endsLine(at: position) { line += 1 }
      position += 1
      if byte == Byte.quote {
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

  /// Whether the last byte of a line end stands at an offset: of CRLF, the second one.
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
    let ends = (start..<offset).filter(endsLine)
    let (lineStart, lines) = (ends.last.map { $0 + 1 } ?? start, ends.count)
    return RowProblem(line: line + lines, column: String(decoding: bytes[lineStart..<offset], as: UTF8.self).count + 1, reason: reason)
  }
}

/// An invalid row of a file, with its position.
public struct RowProblem: Error, Hashable, Codable, Sendable, CustomStringConvertible {
  /// The line, from 1.
  public let line: Int
  /// The character in the line, from 1.
  public let column: Int
  /// A description of the problem.
  public let reason: String

  /// The problem as LINE:COLUMN: REASON.
  public var description: String { "\(line):\(column): \(reason)" }
}

enum Byte {
  static let quote = UInt8(ascii: "\"")
  static let comma = UInt8(ascii: ",")
  static let newline = UInt8(ascii: "\n")
  static let carriageReturn = UInt8(ascii: "\r")

  /// Whether a byte separates the fields of files in another form.
  static func isSeparatorElsewhere(_ byte: UInt8) -> Bool { ";\t|".utf8.contains(byte) }

  /// Returns how a separator is shown.
  static func label(ofSeparator byte: UInt8) -> String { byte == UInt8(ascii: "\t") ? "a tab" : String(UnicodeScalar(byte)) }

  /// Returns the advice for a file whose separator is no comma.
  static func hint(onSeparator byte: UInt8) -> String { "is \(label(ofSeparator: byte)) the separator? Write the file with commas" }

  /// Whether a byte may stand in a decimal number.
  static func isOfDecimal(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) || "+-.eE".utf8.contains(byte) }
}
