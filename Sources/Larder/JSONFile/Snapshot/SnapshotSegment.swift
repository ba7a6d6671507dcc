internal import Foundation

/// A run of a snapshot's lines that is read by itself, so that a large snapshot is read on every core.
struct SnapshotSegment {
  typealias Lines = (lines: [SnapshotReader.Line], end: Int)

  let data: Data
  /// The newest commit of the snapshot.
  let commit: UInt64
  let comparesChecksums: Bool

  /// The least that is worth a core, in bytes.
  private static let size = 1 << 20

  /// Reads the lines from the cursor to the seal.
  /// - Returns: The segments in the order of the file, each with its lines or with what is wrong in it.
  static func read(_ cursor: ByteCursor, data: Data, commit: UInt64, comparesChecksums: Bool) -> [Result<Lines, RepositoryError>] {
    let segment = SnapshotSegment(data: data, commit: commit, comparesChecksums: comparesChecksums)
    let starts = starts(in: cursor)
    guard starts.count > 1 else { return [segment.lines(from: cursor, to: cursor.bytes.count)] }
    let file = cursor.file
    return ConcurrentMap.blockingParts(Array(starts.indices), of: 1) { part in
      let index = part.startIndex
      return data.withUnsafeBytes { bytes in
        var cursor = ByteCursor(bytes, file: file)
        cursor.offset = starts[index]
        return segment.lines(from: cursor, to: index + 1 < starts.count ? starts[index + 1] : bytes.count)
      }
    }
  }

  /// Returns where the segments begin: at the cursor, and behind the line feeds that come next after equal shares.
  private static func starts(in cursor: ByteCursor) -> [Int] {
    let bytes = cursor.bytes
    let cores = min(ProcessInfo.processInfo.activeProcessorCount, (bytes.count - cursor.offset) / size)
    guard cores > 1, let base = bytes.baseAddress else { return [cursor.offset] }
    var starts = [cursor.offset]
    for core in 1..<cores {
      let share = cursor.offset + (bytes.count - cursor.offset) / cores * core
      guard let lineFeed = memchr(base + share, 0x0A, bytes.count - share) else { continue }
      let start = base.distance(to: UnsafeRawPointer(lineFeed)) + 1
      if start > (starts.last ?? 0), start < bytes.count, bytes[start] == UInt8(ascii: "{") { starts.append(start) }
    }
    return starts
  }

  private func lines(from cursor: ByteCursor, to end: Int) -> Result<Lines, RepositoryError> {
    do throws(RepositoryError) { return .success(try readLines(from: cursor, to: end)) } catch { return .failure(error) }
  }

  /// Reads lines from the cursor to an offset, as far as there are any.
  /// - Returns: The lines, and the offset behind the last one.
  func readLines(from start: ByteCursor, to end: Int) throws(RepositoryError) -> Lines {
    var cursor = start
    var lines: [SnapshotReader.Line] = []
    var collection = ""
    while cursor.offset < end, cursor.next == UInt8(ascii: "{") {
      let start = cursor.offset
      let isSameCollection = try readCollection(&cursor, &collection)
      let line = try readRecord(&cursor, collection: collection, start: start)
      if isSameCollection, let previous = lines.last, !(previous.record.key < line.record.key) {
        throw cursor.corrupted("damaged: the records are not in order", at: start)
      }
      guard line.record.revision.number <= commit else { throw cursor.corrupted("damaged: a record from the future", at: start) }
      // The first line tells about how many will follow.
      if lines.isEmpty { lines.reserveCapacity((end - start) / line.text.count + 1) }
      lines.append(line)
      if cursor.skip(",\n") {
        guard cursor.next == UInt8(ascii: "{") else { throw cursor.corrupted("damaged: a record must follow") }
      } else {
        try cursor.expect("\n")
        guard cursor.next == UInt8(ascii: "]") else { throw cursor.corrupted("damaged: the seal must follow") }
      }
    }
    return (lines, cursor.offset)
  }

  /// Reads the collection of a line; mostly it is the one of the line before, which spares making its name again.
  /// - Returns: Whether it is; otherwise the new name comes behind the old one.
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
  private func readRecord(_ cursor: inout ByteCursor, collection: String, start: Int) throws(RepositoryError) -> SnapshotReader.Line {
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
        .corrupted, "damaged: a record does not match its checksum", file: cursor.file, offset: UInt64(cursor.base + start),
        keyHash: key.hash)
    }
    return SnapshotReader.Line(record: record, text: start..<cursor.offset, checksum: checksum)
  }

  /// Returns where the value ends that starts here: before the brace that ends the line, and its comma if it has one.
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
}
