package import Larder

/// A search for records by collection and key.
package struct RecordLookup: Sendable {
  private let records: [StoredRecord]

  /// Takes the records of one collection.
  /// - Throws: `.notFound` for a collection that the store does not have.
  package init(_ reading: StoreReading, collection: String) throws(RepositoryError) {
    records = try reading.records(of: collection)
  }

  /// Returns the record or tombstone with a key, written as it is stored or, for a UUID, in any case.
  package func record(_ key: String) -> StoredRecord? { record(RecordKey(key)) ?? record(RecordKey(key.uppercased()), ifUUID: key) }

  private func record(_ key: RecordKey, ifUUID text: String) -> StoredRecord? {
    let isUUID = text.utf8.count == 36 && text.allSatisfy { $0.isHexDigit || $0 == "-" }
    return isUUID ? record(key) : nil
  }

  private func record(_ key: RecordKey) -> StoredRecord? {
    var (low, high) = (0, records.count)
    while low < high {
      let middle = (low + high) / 2
      if records[middle].key < key { low = middle + 1 } else { high = middle }
    }
    return low < records.count && records[low].key == key ? records[low] : nil
  }
}

extension StoreReading {
  /// The names of the collections that have records or tombstones, in order.
  package var collections: [String] {
    var names: [String] = []
    for record in records where names.last != record.collection { names.append(record.collection) }
    return names
  }

  /// Returns the records and tombstones of a collection, in key order.
  /// - Throws: `.notFound` for a collection that the store does not have.
  package func records(of collection: String) throws(RepositoryError) -> [StoredRecord] {
    let found = records.filter { $0.collection == collection }
    guard found.isEmpty else { return found }
    let names = collections.isEmpty ? "none" : collections.joined(separator: ", ")
    throw RepositoryError(.notFound, "expected a collection of the store, found no \"\(collection)\"; it has \(names)", file: file.path)
  }
}
