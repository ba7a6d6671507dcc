internal import Foundation
@_spi(Inspection) internal import Larder

/// Import source: a JSON file that holds an array of objects.
enum ArraySource {
  /// Reads all elements of the array.
  /// - Throws: `.decodingFailed` with the line if the file is not an array of JSON.
  static func read(_ path: String) throws(RepositoryError) -> [ImportedRecord] {
    let bytes = try ImportBytes.read(path)
    // Some programs write a byte order mark, which RFC 8259 (section 8.1) lets a parser ignore.
    let isMarked = bytes.starts(with: [0xEF, 0xBB, 0xBF])
    let text = isMarked ? Array(bytes.dropFirst(3)) : bytes
    let lines = LineNumbers(text)
    let elements: [JSONValue]
    do throws(RepositoryError) {
      guard let found = try JSONValue(json: Data(text)).arrayValue else {
        throw RepositoryError(.decodingFailed, "expected an array of objects, found another value", offset: 0)
      }
      elements = found
    } catch {
      let line = error.offset.map { "line \(lines.number(at: Int($0))): " } ?? ""
      throw RepositoryError(error.code, line + error.message, file: path, offset: error.offset)
    }
    // A parsed value has no position, so the offsets of the elements come from a second scan.
    return zip(elements, MemberRanges.elements(ofArray: text)).map {
      ImportedRecord(value: $0, file: path, line: lines.number(at: $1.lowerBound))
    }
  }
}

/// Line numbers by byte offset.
///
/// A line ends with LF, CR LF, or CR alone.
struct LineNumbers {
  private let starts: [Int]

  init(_ bytes: [UInt8]) {
    starts = bytes.indices.filter { index in
      // The CR of a CR LF ends no line of its own. Otherwise each such line would count twice.
      let isAlone = index + 1 == bytes.count || bytes[index + 1] != UInt8(ascii: "\n")
      return bytes[index] == UInt8(ascii: "\n") || bytes[index] == UInt8(ascii: "\r") && isAlone
    }
  }

  /// Returns the number of the line at a byte offset, counted from 1.
  func number(at offset: Int) -> Int {
    // Called for each record. A linear search would make an import quadratic.
    var (low, high) = (0, starts.count)
    while low < high {
      let middle = (low + high) / 2
      if starts[middle] < offset { low = middle + 1 } else { high = middle }
    }
    return low + 1
  }
}

/// Reader of whole source files.
enum ImportBytes {
  /// Reads all bytes of a file.
  /// - Throws: `.dataMissing` if there is no file.
  static func read(_ path: String) throws(RepositoryError) -> [UInt8] {
    guard let file = try POSIXFileSystem().open(path, writable: false) else {
      throw RepositoryError(.dataMissing, "there is no such file", file: path)
    }
    let bytes = [UInt8](try file.read(at: 0, count: file.size()))
    try file.close()
    return bytes
  }
}
