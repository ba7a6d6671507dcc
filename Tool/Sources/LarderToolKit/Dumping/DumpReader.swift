package import Foundation
@_spi(Inspection) package import Larder

/// A dump that was read from a file.
package struct DumpReader: Sendable {
  /// Its first line.
  package let header: DumpHeader
  /// Its records and tombstones, in the order of their addresses.
  package private(set) var records: [StoredRecord] = []
  /// The number of bytes up to the end of the last whole line.
  package private(set) var end: Int
  /// Whether all lines are there that the header announces.
  package var isComplete: Bool { records.count == header.lineCount }

  /// Reads a file, up to its last whole line.
  /// - Throws: `.dataMissing` where there is no file, `.notOurStore` and `.newerSchema` for another one, `.decodingFailed` with the offset
  ///   for a line that is no record.
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
    while let next = data[end...].firstIndex(of: Self.lineFeed) {
      let record = try StoredRecord(dumpLine: data[end..<next], file: path, offset: end)
      guard records.last.map({ $0.address < record.address }) ?? true else {
        throw RepositoryError(
          .decodingFailed, "expected a record behind the one before, found one out of order: dump again", file: path,
          offset: UInt64(end))
      }
      records.append(record)
      end = next + 1
    }
    guard records.count <= header.lineCount else {
      throw RepositoryError(
        .decodingFailed, "expected \(header.lineCount) lines, found \(records.count): dump again", file: path, offset: UInt64(end))
    }
  }

  private static let lineFeed = UInt8(ascii: "\n")
}

extension StoredRecord {
  /// Reads a line of a dump; the value gets its names sorted, as stores have them.
  /// - Throws: `.decodingFailed` for a line that is no record.
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
