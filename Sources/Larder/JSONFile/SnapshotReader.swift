internal import Foundation

/// Reads a snapshot, comparing every byte or its checksum.
struct SnapshotReader {
  let data: Data
  let file: String
  /// Whether checksums are compared; off only to show that the tests notice.
  var comparesChecksums = true

  /// A line of the snapshot: its record, the range of its text, and its checksum.
  struct Line {
    let record: StoredRecord
    let text: Range<Int>
    let checksum: UInt32
  }

  /// Reads everything.
  ///
  /// - Parameter visit: Takes each line; the values are slices that share the data.
  /// - Throws: `.notOurStore`, `.newerSchema`, `.corrupted` with the offset.
  func read(_ visit: (Line) throws(RepositoryError) -> Void) throws(RepositoryError) -> SnapshotHeader {
    try data.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: file)
      var seal = SealHash()
      let header = try readHeader(&cursor, &seal)
      let count = try readLines(&cursor, &seal, commit: header.commit, visit)
      try readSeal(&cursor, seal, count: count)
      return header
    }
  }

  /// Reads the header alone.
  ///
  /// - Throws: as ``read(_:)``.
  func readHeader() throws(RepositoryError) -> SnapshotHeader {
    try data.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: file)
      var seal = SealHash()
      return try readHeader(&cursor, &seal)
    }
  }

  private func readHeader(_ cursor: inout ByteCursor, _ seal: inout SealHash) throws(RepositoryError) -> SnapshotHeader {
    guard cursor.skip(SnapshotFormat.opening) else {
      throw RepositoryError(.notOurStore, "the file is not a Larder store", file: file, offset: 0)
    }
    let version = try cursor.number()
    guard version == UInt64(SnapshotFormat.version) else {
      guard version > UInt64(SnapshotFormat.version) else { throw cursor.corrupted("damaged: there is no such format version") }
      throw RepositoryError(
        .newerSchema, "the file has a newer format", file: file, offset: UInt64(SnapshotFormat.opening.utf8CodeUnitCount),
        versions: .init(found: Int(clamping: version), supported: SnapshotFormat.version))
    }
    try cursor.expect(#","store":""#)
    let idOffset = cursor.offset
    let id = try cursor.string()
    guard let storeID = UUID(uuidString: id), storeID.uuidString == id else {
      throw cursor.corrupted("damaged: not an identifier", at: idOffset)
    }
    try cursor.expect(#","generation":"#)
    let generation = try cursor.number()
    try cursor.expect(#","commit":"#)
    let commit = try cursor.number()
    try cursor.expect(#","tombstonesSince":"#)
    let tombstonesSince = try cursor.number()
    let end = cursor.offset
    try cursor.expect(#","crc":""#)
    let checksum = try cursor.hexadecimal(UInt32.self)
    guard !comparesChecksums || checksum == CRC32C.checksum(UnsafeRawBufferPointer(rebasing: cursor.bytes[..<end])) else {
      throw cursor.corrupted("damaged: the header does not match its checksum", at: 0)
    }
    try cursor.expect(#"","records":["#)
    try cursor.expect("\n")
    seal.add(checksum)
    return SnapshotHeader(storeID: storeID, generation: generation, commit: commit, tombstonesSince: tombstonesSince)
  }

  private func readLines(
    _ cursor: inout ByteCursor, _ seal: inout SealHash, commit: UInt64, _ visit: (Line) throws(RepositoryError) -> Void
  ) throws(RepositoryError) -> UInt64 {
    var count: UInt64 = 0
    var collection = ""
    var previous: RecordKey?
    while cursor.next == UInt8(ascii: "{") {
      let start = cursor.offset
      let isSameCollection = try readCollection(&cursor, &collection)
      let line = try readRecord(&cursor, collection: collection, start: start)
      guard line.record.revision.number <= commit else { throw cursor.corrupted("damaged: a record from the future", at: start) }
      if isSameCollection, let previous, !(previous < line.record.key) {
        throw cursor.corrupted("damaged: the records are not in order", at: start)
      }
      previous = line.record.key
      seal.add(line.checksum)
      count += 1
      try visit(line)
      if cursor.skip(",\n") {
        guard cursor.next == UInt8(ascii: "{") else { throw cursor.corrupted("damaged: a record must follow") }
      } else {
        try cursor.expect("\n")
        guard cursor.next == UInt8(ascii: "]") else { throw cursor.corrupted("damaged: the seal must follow") }
      }
    }
    return count
  }

  /// Reads the collection of a line; whether it is the one of the line before, which spares making its name again.
  private func readCollection(_ cursor: inout ByteCursor, _ current: inout String) throws(RepositoryError) -> Bool {
    try cursor.expect(#"{"in":""#)
    let start = cursor.offset
    let isSame = RecordKey(current).withBytes { name in
      name.count > 0 && cursor.bytes.count - start > name.count && cursor.bytes[start + name.count] == UInt8(ascii: "\"")
        && UnsafeRawBufferPointer(rebasing: cursor.bytes[start..<(start + name.count)]).elementsEqualBytes(name)
    }
    if isSame {
      cursor.offset = start + current.utf8.count + 1
    } else {
      let name = try cursor.string()
      guard CollectionName.isValid(name) else { throw cursor.corrupted("damaged: not a collection's name", at: start) }
      guard current.isEmpty || RecordKey(current) < RecordKey(name) else {
        throw cursor.corrupted("damaged: the collections are not in order", at: start)
      }
      current = name
    }
    return isSame
  }

  /// Reads a line from behind its collection to its closing brace.
  private func readRecord(_ cursor: inout ByteCursor, collection: String, start: Int) throws(RepositoryError) -> Line {
    try cursor.expect(#","id":""#)
    let key = RecordKey(try cursor.string())
    try cursor.expect(#","rev":"#)
    let revision = try cursor.number()
    try cursor.expect(#","version":"#)
    let version = try cursor.number()
    guard version >= 1, version <= UInt64(Int32.max) else { throw cursor.corrupted("damaged: not a schema version") }
    try cursor.expect(#","crc":""#)
    let checksum = try cursor.hexadecimal(UInt32.self)
    try cursor.expect(#"","#)
    let value: Data?
    if cursor.skip(#""deleted":true"#) {
      value = nil
    } else {
      try cursor.expect(#""value":"#)
      let end = try endOfValue(cursor)
      value = data[(data.startIndex + cursor.offset)..<(data.startIndex + end)]
      cursor.offset = end
    }
    try cursor.expect("}")
    let record = StoredRecord(
      collection: collection, key: key, revision: Revision(revision), schemaVersion: Int(version), value: value)
    guard !comparesChecksums || checksum == record.checksum else {
      throw RepositoryError(
        .corrupted, "damaged: a record does not match its checksum", file: file, offset: UInt64(start), keyHash: key.hash)
    }
    return Line(record: record, text: start..<cursor.offset, checksum: checksum)
  }

  /// Where the value ends that starts here: before the brace that ends the line, and its comma if it has one.
  private func endOfValue(_ cursor: ByteCursor) throws(RepositoryError) -> Int {
    guard let base = cursor.bytes.baseAddress,
      let lineFeed = memchr(base + cursor.offset, 0x0A, cursor.bytes.count - cursor.offset)
    else { throw cursor.corrupted("the file ends too early", at: cursor.bytes.count) }
    var end = base.distance(to: UnsafeRawPointer(lineFeed))
    if end > cursor.offset, cursor.bytes[end - 1] == UInt8(ascii: ",") { end -= 1 }
    guard end > cursor.offset + 1, cursor.bytes[end - 1] == UInt8(ascii: "}") else {
      throw cursor.corrupted("damaged: the line does not end as it must", at: end)
    }
    return end - 1
  }

  private func readSeal(_ cursor: inout ByteCursor, _ seal: SealHash, count: UInt64) throws(RepositoryError) {
    let start = cursor.offset
    try cursor.expect(#"],"count":"#)
    let sealedCount = try cursor.number()
    try cursor.expect(#","hash":""#)
    let hash = try cursor.hexadecimal(UInt64.self)
    try cursor.expect("\"}\n")
    guard cursor.isAtEnd else { throw cursor.corrupted("damaged: the file goes on behind its seal") }
    guard !comparesChecksums || sealedCount == count && hash == seal.value else {
      throw cursor.corrupted("damaged: the seal does not match the records", at: start)
    }
  }
}
