internal import Larder

/// The single row of `larder_store`: newest commit, counts and digest of the database.
struct SQLiteStoreRow {
  let commit: UInt64
  let tombstonesSince: UInt64
  let records: Int
  let tombstones: Int
  let digest: UInt64

  /// Parses the row.
  ///
  /// Returns `nil` if it does not match its checksum.
  init?(_ columns: [SQLiteColumn]) {
    guard columns.count == 8, let id = columns[0].text else { return nil }
    let numbers = columns.dropFirst().compactMap(\.integer)
    guard numbers.count == 7, numbers[0] >= 0, numbers[1] >= 0 else { return nil }
    (commit, tombstonesSince) = (UInt64(numbers[0]), UInt64(numbers[1]))
    (records, tombstones) = (Int(numbers[2]), Int(numbers[3]))
    digest = UInt64(bitPattern: numbers[4])
    // The checksum is over this text, so the order and the spelling of the numbers are a part of the format.
    let text = "\(id)|\(commit)|\(tombstonesSince)|\(records)|\(tombstones)|\(digest)|\(numbers[5] != 0 ? 1 : 0)"
    guard Int64(Array(text.utf8).withUnsafeBytes { CRC32C.checksum($0) }) == numbers[6] else { return nil }
  }

  /// Returns the digest of records as the row has it.
  ///
  /// It is a sum, so that it does not depend on their order.
  static func digest(of records: [StoredRecord]) -> UInt64 {
    records.reduce(0) { sum, record in
      // SplitMix64's finalizer, as `Docs/Larder.docc/Formats/SQLiteFormat.md` specifies.
      var hash = UInt64(record.checksum) &+ 0x9E37_79B9_7F4A_7C15
      hash = (hash ^ hash >> 30) &* 0xBF58_476D_1CE4_E5B9
      hash = (hash ^ hash >> 27) &* 0x94D0_49BB_1331_11EB
      return sum &+ (hash ^ hash >> 31)
    }
  }
}
