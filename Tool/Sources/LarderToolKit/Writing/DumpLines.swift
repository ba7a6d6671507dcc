internal import Foundation
@_spi(Inspection) internal import Larder

/// Parser of a complete dump that checks each record before any is loaded.
struct DumpLines {
  private let path: String
  private(set) var records: [StoredRecord] = []
  /// Newest commit of the dumped store, or of a record if that is later.
  private(set) var commit: UInt64 = 0
  /// Newest commit whose tombstones the dump may lack.
  private(set) var horizon: UInt64 = 0
  private var lineCount: Int?
  private var lineOf: [RecordAddress: Int] = [:]
  /// Error for the first bad line.
  private var failure: RepositoryError?
  private var failureCount = 0

  /// Reads and checks a dump file.
  /// - Throws: `.dataMissing` and `.protectedDataUnavailable`, `.notOurStore` and `.newerSchema` for a file of another format,
  ///   `.decodingFailed` with the number of the first bad line.
  init(path: String) throws(RepositoryError) {
    let path = AbsolutePath.of(path)
    self.path = path
    guard let file = try POSIXFileSystem().open(path, writable: false) else {
      throw RepositoryError(.dataMissing, "there is no such file", file: path)
    }
    let data = try file.read(at: 0, count: file.size())
    try file.close()
    var (position, number) = (data.startIndex, 1)
    while position < data.endIndex {
      let end = data[position...].firstIndex(of: UInt8(ascii: "\n"))
      do throws(RepositoryError) {
        if number == 1 { try readHeader(data[position..<(end ?? data.endIndex)]) }
        // Every line of a dump ends with a line feed. A last line without one was cut, even if it is valid JSON.
        guard let end else { throw bad("the dump ends within it: dump again, or continue it with --resume", number, position) }
        if number > 1 { try readRecord(data[position..<end], number, position) }
      } catch {
        // Without a header, the following lines are not known to be records. Otherwise all lines are read, to count the bad ones.
        guard number > 1 else { throw error }
        if failure == nil { failure = error }
        failureCount += 1
      }
      position = end.map { $0 + 1 } ?? data.endIndex
      number += 1
    }
    guard number > 1 else { throw RepositoryError(.notOurStore, "expected the header of a dump, found an empty file", file: path) }
    if let failure {
      guard failureCount > 1 else { throw failure }
      let more = "\(failure.message); \(failureCount - 1) more of the lines are bad"
      throw RepositoryError(failure.code, more, file: path, offset: failure.offset, keyHash: failure.keyHash)
    }
    // A dump that was cut between two lines has only good lines. The number in its header shows the cut.
    if let lineCount, lineCount != records.count {
      throw RepositoryError(
        .decodingFailed, "expected \(lineCount) lines behind the header, found \(records.count): dump again, or continue with --resume",
        file: path)
    }
  }

  private func bad(_ reason: String, _ line: Int, _ offset: Int, key: RecordKey? = nil) -> RepositoryError {
    RepositoryError(.decodingFailed, "line \(line): \(reason)", file: path, offset: UInt64(offset), keyHash: key?.hash)
  }

  private mutating func readHeader(_ line: Data) throws(RepositoryError) {
    let header = Self.value(of: line)
    guard let header, header["dump"] == "larder", let version = header["dumpVersion"]?.intValue else {
      throw RepositoryError(.notOurStore, "expected the header of a dump in the first line, found another line", file: path, offset: 0)
    }
    guard version == 1 else {
      throw RepositoryError(
        .newerSchema, "the dump has a newer format", file: path, offset: 0, versions: .init(found: version, supported: 1))
    }
    commit = try number("commit", of: header, upTo: RecordRules.lastCommit) ?? 0
    let since = try number("tombstonesSince", of: header, upTo: commit)
    // A dump without tombstones lacks all deletions up to its newest commit.
    horizon = header["tombstones"] == true ? since ?? commit : commit
    lineCount = try number("lines", of: header, upTo: UInt64(Int.max)).map { Int($0) }
  }

  /// Returns a number of the header.
  ///
  /// `nil` if the header has no such member.
  private func number(_ name: String, of header: JSONValue, upTo limit: UInt64) throws(RepositoryError) -> UInt64? {
    guard let member = header[name] else { return nil }
    guard let number = member.numberValue?.exactly(UInt64.self), number <= limit else {
      throw bad("expected a number from 0 to \(limit) as `\(name)`, found another value: dump again", 1, 0)
    }
    return number
  }

  private static func value(of line: Data) -> JSONValue? {
    do throws(RepositoryError) { return try JSONValue(json: Data(line)) } catch { return nil }
  }

  private mutating func readRecord(_ line: Data, _ number: Int, _ offset: Int) throws(RepositoryError) {
    guard let body = Self.value(of: line) else { throw bad("expected one JSON object, found something else", number, offset) }
    guard let collection = body["collection"]?.stringValue, let text = body["key"]?.stringValue,
      let revision = body["revision"]?.numberValue?.exactly(UInt64.self), let version = body["version"]?.intValue
    else { throw bad("expected the members collection, key, revision and version", number, offset) }
    let key = RecordKey(text)
    // Checked before the first write, because a backend may refuse the name only in the middle of the loading.
    guard RecordRules.isCollectionName(collection) else {
      throw bad("expected a collection's name of 1 to 64 letters, digits, _ . -, found another", number, offset)
    }
    guard (1...RecordRules.lastCommit).contains(revision), RecordRules.schemaVersions.contains(version) else {
      let expected =
        "expected a revision from 1 to \(RecordRules.lastCommit) and a version from 1 to \(RecordRules.schemaVersions.upperBound)"
      throw bad("\(expected), found \(revision) and \(version)", number, offset, key: key)
    }
    // `RecordRules` is applied here, so that the error has the number of the line.
    let value = try value(in: line, body, number, offset)
    if let problem = RecordRules.problem(key, value) { throw bad(problem, number, offset, key: key) }
    let record = StoredRecord(collection: collection, key: key, revision: Revision(revision), schemaVersion: version, value: value)
    // Of two lines for one record, only the later would be stored, and the other would be lost without an error.
    if let other = lineOf.updateValue(number, forKey: record.address) {
      throw bad("expected each record once, found that of line \(other) again", number, offset, key: key)
    }
    commit = max(commit, revision)
    records.append(record)
  }

  /// Returns the bytes of a line's value exactly as they are in the file.
  ///
  /// `nil` for a deletion.
  private func value(in line: Data, _ body: JSONValue, _ number: Int, _ offset: Int) throws(RepositoryError) -> Data? {
    if body["deleted"] == true { return nil }
    if let text = body["bytes"]?.stringValue {
      guard let bytes = Data(base64Encoded: text) else { throw bad("expected bytes in base 64, found something else", number, offset) }
      return bytes
    }
    guard body["value"] != nil, let range = MemberRanges.members(ofObject: Data(line))["value"] else {
      throw bad("expected a value, bytes, or a deletion, found none of them", number, offset)
    }
    return Data(Data(line)[range])
  }
}
