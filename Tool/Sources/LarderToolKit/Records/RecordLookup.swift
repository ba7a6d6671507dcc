package import Larder

/// Lookup of records in one collection by key.
package struct RecordLookup: Sendable {
  private let records: [StoredRecord]

  /// Creates a lookup over one collection of a store that was read.
  /// - Throws: `.notFound` for a collection that the store does not have.
  package init(_ reading: StoreReading, collection: String) throws(RepositoryError) {
    records = try reading.records(of: collection)
  }

  /// Returns the record or tombstone with a key.
  ///
  /// The key of a UUID may be in any case.
  package func record(_ key: String) -> StoredRecord? { record(RecordKey(key)) ?? record(RecordKey(key.uppercased()), ifUUID: key) }

  private func record(_ key: RecordKey, ifUUID text: String) -> StoredRecord? {
    // Larder stores UUIDs in upper case, and other programs print them in lower case. Other keys are compared exactly.
    let isUUID = text.utf8.count == 36 && text.allSatisfy { $0.isHexDigit || $0 == "-" }
    return isUUID ? record(key) : nil
  }

  private func record(_ key: RecordKey) -> StoredRecord? {
    // `StoreReading` sorts the records, so a binary search finds a key.
    var (low, high) = (0, records.count)
    while low < high {
      let middle = (low + high) / 2
      if records[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low < records.count && records[low].key == key ? records[low] : nil
  }
}

extension StoreReading {
  /// Names of the collections that have records or tombstones, in order.
  package var collections: [String] {
    var names: [String] = []
    // Records are sorted by collection first, so those of one collection are adjacent.
    for record in records where names.last != record.collection { names.append(record.collection) }
    return names
  }

  /// Returns the records and tombstones of a collection, sorted by key.
  /// - Throws: `.notFound` for a collection that the store does not have.
  package func records(of collection: String) throws(RepositoryError) -> [StoredRecord] {
    let found = records.filter { $0.collection == collection }
    // A collection exists only through its records and tombstones. Without any, the name is wrong.
    guard found.isEmpty else { return found }
    let names = collections.isEmpty ? "none" : collections.joined(separator: ", ")
    throw RepositoryError(.notFound, "expected a collection of the store, found no \"\(collection)\"; it has \(names)", file: file.path)
  }
}
