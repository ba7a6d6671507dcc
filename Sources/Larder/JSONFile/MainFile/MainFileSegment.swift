internal import Foundation

/// A run of a main file's lines that is read by itself.
struct MainFileSegment {
  typealias Lines = (lines: [MainFileReader.Line], end: Int)

  let data: Data
  /// The newest commit of the main file.
  let commit: UInt64

  /// Whether values are copied, so that they do not keep alive what they were read from.
  var copiesValues = false

  /// Reads the lines of a piece.
  static func read(_ piece: MainFilePiece, commit: UInt64, file: String) -> Result<Lines, RepositoryError> {
    let segment = MainFileSegment(data: piece.bytes, commit: commit, copiesValues: true)
    return piece.bytes.withUnsafeBytes { bytes in
      var cursor = ByteCursor(bytes, file: file)
      cursor.base = piece.start
      do throws(RepositoryError) { return .success(try segment.readLines(from: cursor, to: piece.end)) } catch { return .failure(error) }
    }
  }

  /// Reads lines from the cursor to an offset, as far as there are any.
  /// - Returns: The lines, and the offset behind the last one.
  func readLines(from start: ByteCursor, to end: Int) throws(RepositoryError) -> Lines {
    var cursor = start
    var lines: [MainFileReader.Line] = []
    var arena: ValueArena? = copiesValues ? ValueArena() : nil
    var collection = ""
    while cursor.offset < end, cursor.next == UInt8(ascii: "{") {
      let start = cursor.offset
      let isSameCollection = try readCollection(&cursor, &collection)
      let line = try readRecord(&cursor, &arena, collection: collection, start: start)
      if isSameCollection, let previous = lines.last, !(previous.record.key < line.record.key) {
        throw cursor.corrupted("expected a key after that of the record before", at: start)
      }
      guard line.record.revision.number <= commit else {
        throw cursor.corrupted("record revision \(line.record.revision) exceeds the file's commit \(commit)", at: start)
      }
      // The first line tells about how many will follow.
      if lines.isEmpty { lines.reserveCapacity((end - start) / line.text.count + 1) }
      lines.append(line)
      if cursor.skip(",\n") {
        guard cursor.next == UInt8(ascii: "{") else { throw cursor.corrupted("expected a record after the comma") }
      } else {
        try cursor.expect("\n")
        guard cursor.next == UInt8(ascii: "]") else { throw cursor.corrupted("expected the seal after the last record") }
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
      guard CollectionName.isValid(name) else { throw cursor.corrupted("expected a collection's name", at: start) }
      guard current.isEmpty || RecordKey(current) < RecordKey(name) else {
        throw cursor.corrupted("expected a collection after the one before in byte order", at: start)
      }
      current = name
    }
    return isSame
  }

  /// Reads a line from behind its collection to its closing brace.
  private func readRecord(
    _ cursor: inout ByteCursor, _ arena: inout ValueArena?, collection: String, start: Int
  ) throws(RepositoryError) -> MainFileReader.Line {
    try cursor.expect(#","id":""#)
    let key = try readKey(&cursor)
    try cursor.expect(#","rev":"#)
    let revision = try cursor.number()
    try cursor.expect(#","version":"#)
    let version = try cursor.number()
    guard version >= 1, version <= UInt64(Int32.max) else { throw cursor.corrupted("expected a schema version from 1 to \(Int32.max)") }
    try cursor.expect(#","crc":""#)
    let checksum = try cursor.hexadecimal(UInt32.self)
    try cursor.expect(#"","#)
    let value: Data?
    if cursor.skip(#""deleted":true"#) {
      value = nil
    } else {
      try cursor.expect(#""value":"#)
      let end = try endOfValue(cursor)
      value =
        arena?.copy(UnsafeRawBufferPointer(rebasing: cursor.bytes[cursor.offset..<end]))
        ?? data[(data.startIndex + cursor.offset)..<(data.startIndex + end)]
      cursor.offset = end
    }
    try cursor.expect("}")
    let record = StoredRecord(
      collection: collection, key: key, revision: Revision(revision), schemaVersion: Int(version), value: value)
    guard checksum == record.checksum else {
      throw RepositoryError(
        .corrupted, "the record does not match its checksum", file: cursor.file, offset: UInt64(cursor.base + start),
        keyHash: key.hash)
    }
    return MainFileReader.Line(record: record, text: start..<cursor.offset, checksum: checksum)
  }

  /// Reads a key and its closing quotation mark; makes no text where it is that of a UUID, which has nothing to escape.
  private func readKey(_ cursor: inout ByteCursor) throws(RepositoryError) -> RecordKey {
    let end = cursor.offset + UUIDNumber.textCount
    if end < cursor.bytes.count, cursor.bytes[end] == UInt8(ascii: "\""),
      let number = UUIDNumber(text: UnsafeRawBufferPointer(rebasing: cursor.bytes[cursor.offset..<end]))
    {
      cursor.offset = end + 1
      return RecordKey(number)
    }
    return RecordKey(try cursor.string())
  }

  /// Returns the end of the value that starts here: before the brace that ends the line, and its comma if it has one.
  private func endOfValue(_ cursor: ByteCursor) throws(RepositoryError) -> Int {
    guard let base = cursor.bytes.baseAddress,
      let lineFeed = memchr(base + cursor.offset, 0x0A, cursor.bytes.count - cursor.offset)
    else { throw cursor.corrupted("the file ends too early; it was cut off", at: cursor.bytes.count) }
    var end = base.distance(to: UnsafeRawPointer(lineFeed))
    if end > cursor.offset, cursor.bytes[end - 1] == UInt8(ascii: ",") { end -= 1 }
    guard end > cursor.offset + 1, cursor.bytes[end - 1] == UInt8(ascii: "}") else {
      throw cursor.corrupted("expected the line to end in `}` or `},`", at: end)
    }
    return end - 1
  }
}
