internal import Larder

/// The order in which the records of a batch are written: by table and key, with only the last record of each address.
///
/// Records are compared by numbers that are computed once from the first bytes of their keys. A sort compares each record some twenty
/// times, and fetching a record or the bytes of its key costs more than comparing two numbers.
struct SQLiteRecordOrder {
  /// Positions of the records in the batch, in the order in which they are written.
  private(set) var positions: [Int] = []

  init(_ records: [StoredRecord]) {
    guard records.count > 1 else {
      positions = Array(records.indices)
      return
    }
    let places = Self.places(of: records).sorted { left, right in
      if left.collection != right.collection { return left.collection < right.collection }
      if left.high != right.high { return left.high < right.high }
      if left.low != right.low { return left.low < right.low }
      // Two records whose keys have the same first bytes usually have the same key, which was saved twice. The records of one key keep the
      // order of the batch, so that the last record of the key is the one that is written.
      let (first, second) = (records[left.position].key, records[right.position].key)
      return first == second ? left.position < right.position : first < second
    }
    positions.reserveCapacity(places.count)
    for (index, place) in places.enumerated() {
      // A record that is followed by a later record of the same address is left out. Without this check, the writer would write both
      // records, one after the other.
      if index + 1 < places.count, places[index + 1].hasFirstBytes(of: place),
        records[places[index + 1].position].key == records[place.position].key
      {
        continue
      }
      positions.append(place.position)
    }
  }

  /// The numbers by which a record is compared with other records of its batch.
  ///
  /// The whole keys of two records are compared only if these numbers are equal.
  private struct Place {
    /// Rank of the record's collection in the order of the collections' names.
    let collection: Int
    /// First 16 bytes of the record's key as two numbers, with zeros after the end of a shorter key.
    let (high, low): (UInt64, UInt64)
    let position: Int

    func hasFirstBytes(of other: Place) -> Bool { collection == other.collection && high == other.high && low == other.low }
  }

  private static func places(of records: [StoredRecord]) -> [Place] {
    var names: Set<String> = []
    var last: String?
    // Consecutive records often have the same collection. The name of the collection is hashed once for consecutive records, because
    // hashing costs time.
    for record in records where record.collection != last {
      names.insert(record.collection)
      last = record.collection
    }
    var numbers: [String: Int] = [:]
    for (number, name) in names.sorted(by: { RecordKey($0) < RecordKey($1) }).enumerated() { numbers[name] = number }
    var (name, number) = ("", 0)
    return records.indices.map { position in
      let record = records[position]
      if record.collection != name { (name, number) = (record.collection, numbers[record.collection, default: 0]) }
      let (high, low) = record.key.withBytes { ($0.number(from: 0), $0.number(from: 8)) }
      return Place(collection: number, high: high, low: low, position: position)
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Returns eight bytes as a big-endian number, which sorts like the bytes, with zeros for bytes past the end.
  fileprivate func number(from offset: Int) -> UInt64 {
    if count >= offset + 8 { return UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
    return (offset..<offset + 8).reduce(0) { $0 << 8 | ($1 < count ? UInt64(self[$1]) : 0) }
  }
}
