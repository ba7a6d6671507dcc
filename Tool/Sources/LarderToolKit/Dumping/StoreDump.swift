package import Foundation
package import Larder

/// Selection of a store's records to dump, with the header for them.
package struct StoreDump: Sendable {
  /// First line of the dump.
  package let header: DumpHeader
  /// Records and tombstones of the dump, one for each line, sorted by address.
  package let records: [StoredRecord]

  /// Selects the records to dump from a store that was read.
  /// - Parameters:
  ///   - collections: Collections to dump. Empty for all.
  ///   - hasTombstones: Whether tombstones are included.
  ///   - after: Address after which the dump begins, as `COLLECTION:KEY`.
  /// - Throws: `.notFound` for a collection that the store does not have, `.unsupported` for an address without a colon.
  package init(
    _ reading: StoreReading, collections: [String] = [], hasTombstones: Bool = false, after: String? = nil
  ) throws(RepositoryError) {
    // A mistyped name must fail here. The filter below would write an empty dump for it.
    for collection in collections { _ = try reading.records(of: collection) }
    let wanted = Set(collections)
    let start = try after.map { text throws(RepositoryError) in try Self.address(text) }
    // Only the collection must exist. The key may have been deleted since an earlier dump ended there.
    if let start { _ = try reading.records(of: start.collection) }
    records = reading.records.filter { record in
      (wanted.isEmpty || wanted.contains(record.collection)) && (hasTombstones || record.value != nil)
        && (start.map { $0 < record.address } ?? true)
    }
    header = DumpHeader(
      storeID: reading.report.storeID.uuidString, commit: reading.report.commit.number,
      tombstoneHorizon: reading.report.tombstoneHorizon.number, lineCount: records.count, hasTombstones: hasTombstones,
      collections: wanted.sorted(), after: after)
  }

  /// Parses an address of the form `COLLECTION:KEY`.
  ///
  /// The first colon separates the two, because a key may contain colons and the name of a collection may not.
  package static func address(_ text: String) throws(RepositoryError) -> RecordAddress {
    guard let colon = text.firstIndex(of: ":") else {
      throw RepositoryError(.unsupported, "expected COLLECTION:KEY with a colon, found none")
    }
    return RecordAddress(collection: String(text[..<colon]), key: RecordKey(String(text[text.index(after: colon)...])))
  }

  /// Passes the dump to `write` line by line, beginning with the header.
  /// - Parameter count: Number of record lines to omit, along with the header. `nil` writes everything.
  package func write(
    passingOver count: Int? = nil, _ progress: ProgressLine, _ write: (Data) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    if count == nil { try write(header.line) }
    for record in records.dropFirst(count ?? 0) {
      try write(record.line)
      progress.advance()
    }
    progress.finish()
  }
}
