package import Foundation
@_spi(Inspection) package import Larder

/// Header and records of a dump file, up to its last complete line.
package struct DumpReader: Sendable {
  /// The dump's first line.
  package let header: DumpHeader
  /// The dump's records and tombstones, sorted by address.
  package private(set) var records: [StoredRecord] = []
  /// Offset after the last complete line.
  ///
  /// A run with `--resume` continues here.
  package private(set) var end: Int
  /// Whether the file has as many lines as its header announces.
  package var isComplete: Bool { records.count == header.lineCount }

  /// Reads a dump file up to its last complete line.
  /// - Throws: `.dataMissing` if there is no file, `.notOurStore` and `.newerSchema` if it has another format, `.decodingFailed` with the
  ///   offset if a complete line is not a record.
  package init(path: String) throws(RepositoryError) {
    let data: Data
    do {
      data = try Data(contentsOf: URL(fileURLWithPath: path, isDirectory: false))
    } catch {
      let isThere = FileManager.default.fileExists(atPath: path)
      throw RepositoryError(
        isThere ? .protectedDataUnavailable : .dataMissing, isThere ? "the file cannot be read" : "there is no such file", file: path)
    }
    guard let first = data.firstIndex(of: Self.lineFeed) else {
      throw RepositoryError(.notOurStore, "expected the header of a dump in the first line, found no line", file: path, offset: 0)
    }
    header = try DumpHeader(line: data[..<first], file: path)
    end = first + 1
    // Bytes after the last line feed are the incomplete line of an interrupted run, and are left out.
    while let next = data[end...].firstIndex(of: Self.lineFeed) {
      let record = try StoredRecord(dumpLine: data[end..<next], file: path, offset: end)
      // `diff` merges both sides in address order, and would report wrong differences for records out of order.
      guard records.last.map({ $0.address < record.address }) ?? true else {
        throw RepositoryError(
          .decodingFailed, "expected a record behind the one before, found one out of order: dump again", file: path,
          offset: UInt64(end))
      }
      records.append(record)
      end = next + 1
    }
    // Two runs that wrote to the file at once may have appended more lines than the header announces.
    guard records.count <= header.lineCount else {
      throw RepositoryError(
        .decodingFailed, "expected \(header.lineCount) lines, found \(records.count): dump again", file: path, offset: UInt64(end))
    }
  }

  private static let lineFeed = UInt8(ascii: "\n")
}

extension StoredRecord {
  /// Parses a line of a dump.
  ///
  /// The value is written again with the names of its members sorted, as `JSONValue` writes them.
  /// - Throws: `.decodingFailed` if the line is not a record.
  package init(dumpLine line: Data, file: String, offset: Int) throws(RepositoryError) {
    func damaged(_ found: String) -> RepositoryError {
      RepositoryError(
        .decodingFailed, "expected a record of a dump in this line, found \(found): dump again", file: file, offset: UInt64(offset))
    }
    let json: JSONValue?
    do throws(RepositoryError) { json = try JSONValue(json: line) } catch { json = nil }
    guard let body = json?.objectValue, let collection = body["collection"]?.stringValue, let key = body["key"]?.stringValue,
      let revision = body["revision"]?.numberValue?.exactly(UInt64.self), let version = body["version"]?.intValue
    else { throw damaged("no collection, key, revision or version") }
    var value: Data?
    if body["deleted"] != true {
      // A value that is not JSON cannot be a member of the line. The dump has its bytes in base 64.
      if let text = body["bytes"]?.stringValue {
        guard let bytes = Data(base64Encoded: text) else { throw damaged("bytes that are not base 64") }
        value = bytes
      } else {
        guard let member = body["value"] else { throw damaged("neither a value nor a deletion") }
        value = member.json
      }
    }
    self.init(collection: collection, key: RecordKey(key), revision: Revision(revision), schemaVersion: version, value: value)
  }
}
