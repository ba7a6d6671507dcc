// Dumping/ writes the records of a store as lines of JSON, and reads them back.
// Invariant: a dump is of one moment, and its header says how many lines follow. Called by the commands `dump`, `diff` and `load`.

package import Foundation
@_spi(Inspection) package import Larder

/// The first line of a dump.
package struct DumpHeader: Equatable, Sendable {
  /// The store that was dumped.
  package var storeID: String
  /// Its newest commit.
  package var commit: UInt64
  /// The newest deletion whose tombstone was forgotten.
  package var tombstoneHorizon: UInt64
  /// The number of lines of the whole dump, without the header.
  package var lineCount: Int
  /// Whether deletions are in it, where they are still known.
  package var hasTombstones: Bool
  /// The collections that were asked for; empty for all.
  package var collections: [String]
  /// The address after which it begins, as `COLLECTION:KEY`; `nil` for the beginning.
  package var after: String?

  /// The version of the format.
  package static let version = 1
  /// The first bytes of every dump.
  static let opening = #"{"dump":"larder","dumpVersion":"#

  /// The header as one line of JSON, which tells by its first bytes that it is one.
  package var line: Data {
    var body = JSONObject()
    body["storeID"] = JSONValue(storeID)
    body["commit"] = JSONValue(commit)
    body["tombstonesSince"] = JSONValue(tombstoneHorizon)
    body["lines"] = JSONValue(lineCount)
    body["tombstones"] = JSONValue(hasTombstones)
    body["collections"] = .array(collections.map { JSONValue($0) })
    body["after"] = after.map { JSONValue($0) }
    return Data("\(Self.opening)\(Self.version),\(JSONValue.object(body).text.dropFirst())\n".utf8)
  }
}

extension DumpHeader {
  /// Reads the first line of a dump.
  /// - Throws: `.notOurStore` for what is no dump, `.newerSchema` for one of a later version.
  package init(line: Data, file: String) throws(RepositoryError) {
    let value: JSONValue?
    do throws(RepositoryError) { value = try JSONValue(json: line) } catch { value = nil }
    guard let body = value?.objectValue, body["dump"] == "larder", let version: Int = body["dumpVersion"]?.intValue else {
      throw RepositoryError(.notOurStore, "expected the header of a dump in the first line, found another line", file: file, offset: 0)
    }
    guard version == Self.version else {
      throw RepositoryError(
        .newerSchema, "the dump has a newer format", file: file, offset: 0, versions: .init(found: version, supported: Self.version))
    }
    guard let storeID = body["storeID"]?.stringValue, let commit = body["commit"]?.numberValue?.exactly(UInt64.self),
      let horizon = body["tombstonesSince"]?.numberValue?.exactly(UInt64.self), let lineCount = body["lines"]?.intValue, lineCount >= 0,
      let hasTombstones = body["tombstones"]?.boolValue
    else {
      throw RepositoryError(
        .decodingFailed, "expected the store, the commit and the counts in the header of the dump, found others: dump again", file: file,
        offset: 0)
    }
    let collections = (body["collections"]?.arrayValue ?? []).compactMap(\.stringValue)
    self.init(
      storeID: storeID, commit: commit, tombstoneHorizon: horizon, lineCount: lineCount, hasTombstones: hasTombstones,
      collections: collections, after: body["after"]?.stringValue)
  }
}
