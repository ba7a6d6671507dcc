// Dumping/ writes the records of a store as lines of JSON, and reads them back.
// Invariant: a dump is of one commit, and its header has the number of its lines. Called by the commands `dump`, `diff` and `load`.

package import Foundation
@_spi(Inspection) package import Larder

/// First line of a dump, which names the store, the commit and the options of the dump.
package struct DumpHeader: Equatable, Sendable {
  /// UUID of the store that was dumped.
  package var storeID: String
  /// Newest commit of the store at the time of the dump.
  package var commit: UInt64
  /// Newest commit whose tombstones may have been forgotten.
  ///
  /// All later deletions are known.
  package var tombstoneHorizon: UInt64
  /// Number of lines in the complete dump, without the header.
  package var lineCount: Int
  /// Whether the dump includes the tombstones that the store still has.
  package var hasTombstones: Bool
  /// Collections in the dump.
  ///
  /// Empty for all.
  package var collections: [String]
  /// Address after which the dump begins, as `COLLECTION:KEY`.
  ///
  /// `nil` for a dump from the first record on.
  package var after: String?

  /// Version of the dump format.
  package static let version = 1
  /// Bytes that every dump begins with, by which `diff` distinguishes a dump from a store.
  static let opening = #"{"dump":"larder","dumpVersion":"#

  /// The header as one line of JSON that begins with `opening`.
  package var line: Data {
    var body = JSONObject()
    body["storeID"] = JSONValue(storeID)
    body["commit"] = JSONValue(commit)
    body["tombstonesSince"] = JSONValue(tombstoneHorizon)
    body["lines"] = JSONValue(lineCount)
    body["tombstones"] = JSONValue(hasTombstones)
    body["collections"] = .array(collections.map { JSONValue($0) })
    body["after"] = after.map { JSONValue($0) }
    // Larder sorts the members of an object by name. The opening is written separately, so that these two come first.
    return Data("\(Self.opening)\(Self.version),\(JSONValue.object(body).text.dropFirst())\n".utf8)
  }
}

extension DumpHeader {
  /// Parses the first line of a dump.
  /// - Throws: `.notOurStore` for any other line, `.newerSchema` for a later format, `.decodingFailed` for a missing member.
  package init(line: Data, file: String) throws(RepositoryError) {
    let value: JSONValue?
    do throws(RepositoryError) { value = try JSONValue(json: line) } catch { value = nil }
    guard let body = value?.objectValue, body["dump"] == "larder", let version: Int = body["dumpVersion"]?.intValue else {
      throw RepositoryError(.notOurStore, "expected the header of a dump in the first line, found another line", file: file, offset: 0)
    }
    // The version is checked before the other members, because a later format may have other ones.
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
