package import Foundation
package import Larder

/// The part of a store that a dump has: its header and its lines.
package struct StoreDump: Sendable {
  /// The first line.
  package let header: DumpHeader
  /// The records and tombstones, one for each line.
  package let records: [StoredRecord]

  /// Chooses what to dump.
  /// - Parameters:
  ///   - collections: The collections, all if there are none.
  ///   - after: An address as `COLLECTION:KEY`, behind which the dump begins.
  /// - Throws: `.notFound` for a collection that the store does not have; `.unsupported` for an address without a colon.
  package init(
    _ reading: StoreReading, collections: [String] = [], hasTombstones: Bool = false, after: String? = nil
  ) throws(RepositoryError) {
    for collection in collections { _ = try reading.records(of: collection) }
    let wanted = Set(collections)
    let start = try after.map { text throws(RepositoryError) in try Self.address(text) }
    // Its key may have been deleted since an earlier dump ended there.
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

  /// Returns the address that `COLLECTION:KEY` names; a collection has no colon in its name, and a key may.
  package static func address(_ text: String) throws(RepositoryError) -> RecordAddress {
    guard let colon = text.firstIndex(of: ":") else {
      throw RepositoryError(.unsupported, "expected COLLECTION:KEY with a colon, found none")
    }
    return RecordAddress(collection: String(text[..<colon]), key: RecordKey(String(text[text.index(after: colon)...])))
  }

  /// Hands over the dump in pieces: the header, then line by line.
  /// - Parameter count: The number of lines that are there already, with the header; nothing is handed over for them.
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
