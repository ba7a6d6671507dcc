// Resealing/ accepts the changes that a person has made in a JSON main file by hand, and computes its checksums anew.
// Invariant: a record whose checksum matches keeps its bytes and its revision. Called by the command `reseal`.

internal import Foundation
@_spi(Inspection) internal import Larder

/// JSON main file that a person may have edited.
///
/// It has the members of a store, with any line breaks and spaces.
struct EditedFile {
  /// Record as the file has it now, with the result of comparing its checksum.
  struct Entry {
    let record: StoredRecord
    /// True if the checksum matches, so that the record is as Larder wrote it.
    let isUntouched: Bool
    /// True if the record has no checksum, as one that a person has added.
    let isNew: Bool
  }

  let path: String
  let storeID: UUID
  let generation: UInt64
  let commit: UInt64
  let tombstonesSince: UInt64
  private(set) var entries: [RecordAddress: Entry] = [:]
  /// Number of records and tombstones in the seal, the last line of a main file.
  ///
  /// `nil` if the seal was removed.
  let sealedCount: Int?

  /// Reads an edited main file.
  /// - Throws: `.corrupted` with the line if the file is not JSON or lacks a member of a store, `.newerSchema`, `.notOurStore`,
  ///   `.alreadyExists` for a record that occurs twice.
  init(path: String) throws(RepositoryError) {
    self.path = path
    let bytes = try ImportBytes.read(path)
    let lines = LineNumbers(bytes)
    let body: JSONObject
    do throws(RepositoryError) {
      guard let object = try JSONValue(json: Data(bytes)).objectValue else {
        throw RepositoryError(.decodingFailed, "expected an object", offset: 0)
      }
      body = object
    } catch {
      // A person needs the line to find the mistake in an editor.
      let place = error.offset.map { "line \(lines.number(at: Int($0))): " } ?? ""
      throw RepositoryError(
        .corrupted, "\(place)\(error.message): mend the JSON first, or run `larder repair`", file: path, offset: error.offset)
    }
    guard body["format"] == "larder", let version = body["formatVersion"]?.intValue else {
      throw RepositoryError(.notOurStore, "expected the members of a Larder store, found others", file: path)
    }
    guard version == 1 else {
      throw RepositoryError(.newerSchema, "the file has a newer format", file: path, versions: .init(found: version, supported: 1))
    }
    guard let id = body["store"]?.stringValue.flatMap({ UUID(uuidString: $0) }), let generation = Self.number(body["generation"]),
      let commit = Self.number(body["commit"]), let since = Self.number(body["tombstonesSince"]), since <= commit,
      let records = body["records"]?.arrayValue
    else {
      throw RepositoryError(
        .corrupted, "expected the members store, generation, commit, tombstonesSince and records of the header: put them back", file: path)
    }
    (storeID, self.generation, self.commit, tombstonesSince) = (id, generation, commit, since)
    sealedCount = body["count"]?.intValue
    // The checksum of a record is over its bytes, so their places are needed and not only the parsed values.
    guard let list = MemberRanges.members(ofObject: Data(bytes))["records"] else {
      throw RepositoryError(.corrupted, "expected the member records, found none", file: path)
    }
    let elements = MemberRanges.elements(ofArray: Array(bytes[list])).map {
      ($0.lowerBound + list.lowerBound)..<($0.upperBound + list.lowerBound)
    }
    for (value, range) in zip(records, elements) {
      let entry = try entry(value, Data(bytes[range]), line: lines.number(at: range.lowerBound))
      // Copying a line is an easy way to add a record, and forgetting to change its id an easy mistake.
      guard entries.updateValue(entry, forKey: entry.record.address) == nil else {
        throw RepositoryError(
          .alreadyExists, "line \(lines.number(at: range.lowerBound)): expected each record once, found one again", file: path,
          keyHash: entry.record.key.hash)
      }
    }
  }

  private static func number(_ value: JSONValue?) -> UInt64? {
    // Both kinds of stores keep 63 bits of a number.
    value?.numberValue?.exactly(UInt64.self).flatMap { $0 < UInt64(Int64.max) ? $0 : nil }
  }

  private func entry(_ value: JSONValue, _ text: Data, line: Int) throws(RepositoryError) -> Entry {
    func bad(_ expected: String) -> RepositoryError { RepositoryError(.corrupted, "line \(line): expected \(expected)", file: path) }
    guard let collection = value["in"]?.stringValue, RecordRules.isCollectionName(collection), let id = value["id"]?.stringValue else {
      throw bad("a record with a collection as `in` and a key as `id`")
    }
    // A new record needs only `in`, `id` and `value`. Version, revision and checksum may be missing.
    let version = value["version"]?.intValue ?? 1
    guard RecordRules.schemaVersions.contains(version) else {
      throw bad("a version from 1 to \(RecordRules.schemaVersions.upperBound), found \(version)")
    }
    let revision = Self.number(value["rev"])
    let isDeleted = value["deleted"] == true
    // A line with both a value and a deletion is ambiguous, and could delete a record by mistake.
    guard isDeleted != (value["value"] != nil) else { throw bad("either a value or `\"deleted\":true`") }
    let checksum = value["crc"]?.stringValue.flatMap { UInt32($0, radix: 16) }
    func record(_ value: Data?) -> StoredRecord {
      StoredRecord(collection: collection, key: RecordKey(id), revision: Revision(revision ?? 0), schemaVersion: version, value: value)
    }
    // An editor may have spread the value over several lines. Joined to one line, it may still match its checksum.
    let asStored = isDeleted ? nil : MemberRanges.members(ofObject: text)["value"].map { Data(text[$0]) }
    let onOneLine = isDeleted ? nil : value["value"]?.json
    // A revision above the newest commit cannot be Larder's. The record gets a new one.
    for candidate in [asStored, onOneLine] where revision.map({ $0 >= 1 && $0 <= commit }) == true && checksum == record(candidate).checksum
    {
      return Entry(record: record(candidate), isUntouched: true, isNew: false)
    }
    // An edit must not bring in a record that no app could have saved.
    if let problem = RecordRules.problem(RecordKey(id), onOneLine) {
      throw bad("a record within the limits: \(problem)")
    }
    return Entry(record: record(onOneLine), isUntouched: false, isNew: checksum == nil)
  }
}
