internal import Foundation

/// A scanner that reads the lines of a main file, and checks their checksums and their order.
struct MainFileScanner {
  /// A line of a main file, with the record's value and the line's text as ranges of the bytes that were read.
  struct Line {
    let key: RecordKey
    let revision: UInt64
    let schemaVersion: Int
    let checksum: UInt32
    /// Range of the record's value, or `nil` for a tombstone.
    let value: Range<Int>?
    let text: Range<Int>
    /// True if the previous line has the same collection.
    let isOfSameCollection: Bool
  }

  private(set) var cursor: ByteCursor
  /// Newest commit of the main file.
  private let commit: UInt64
  /// Collection of the line that was read last.
  private(set) var collection = ""
  /// UTF-8 bytes of ``collection``.
  private var name: [UInt8] = []
  /// Key of the line that was read last.
  private(set) var last: RecordKey?

  init(_ cursor: ByteCursor, commit: UInt64) { (self.cursor, self.commit) = (cursor, commit) }

  /// Reads the next line, or returns `nil` if no line starts before an offset.
  mutating func next(before end: Int) throws(RepositoryError) -> Line? {
    guard cursor.offset < end, cursor.next == UInt8(ascii: "{") else { return nil }
    let start = cursor.offset
    let isOfSameCollection = try readCollection()
    let line = try readRecord(start: start, isOfSameCollection)
    // Keys must increase within a collection, and two equal keys would be two versions of one record.
    if isOfSameCollection, let last, !(last < line.key) {
      throw cursor.corrupted("expected a key after that of the record before", at: start)
    }
    // The header names the newest commit in the main file, so a record with a newer revision is a sign of damage.
    guard line.revision <= commit else {
      throw cursor.corrupted("record revision \(Revision(line.revision)) exceeds the file's commit \(commit)", at: start)
    }
    last = line.key
    if cursor.skip(",\n") {
      guard cursor.next == UInt8(ascii: "{") else { throw cursor.corrupted("expected a record after the comma") }
    } else {
      try cursor.expect("\n")
      guard cursor.next == UInt8(ascii: "]") else { throw cursor.corrupted("expected the seal after the last record") }
    }
    return line
  }

  /// Reads the name of a line's collection, and keeps the existing string if the previous line has the same collection.
  ///
  /// - Returns: True if the previous line has the same collection.
  private mutating func readCollection() throws(RepositoryError) -> Bool {
    try cursor.expect(#"{"in":""#)
    let start = cursor.offset
    let end = start + name.count
    // Most lines have the collection of the previous line. Comparing the bytes with the previous name first saves making and checking a
    // string for each line.
    if !name.isEmpty, end < cursor.bytes.count, cursor.bytes[end] == UInt8(ascii: "\""),
      name.withUnsafeBytes({ $0.elementsEqualBytes(UnsafeRawBufferPointer(rebasing: cursor.bytes[start..<end])) })
    {
      cursor.offset = end + 1
      return true
    }
    let name = try cursor.string()
    guard CollectionName.isValid(name) else { throw cursor.corrupted("expected a collection's name", at: start) }
    guard collection.isEmpty || RecordKey(collection) < RecordKey(name) else {
      throw cursor.corrupted("expected a collection after the one before in byte order", at: start)
    }
    (collection, self.name) = (name, Array(name.utf8))
    return false
  }

  /// Reads the rest of a line, from behind its collection name to its closing brace.
  private mutating func readRecord(start: Int, _ isOfSameCollection: Bool) throws(RepositoryError) -> Line {
    try cursor.expect(#","id":""#)
    let keyStart = cursor.offset
    let key = try readKey()
    try cursor.expect(#","rev":"#)
    let revision = try cursor.number()
    try cursor.expect(#","version":"#)
    let version = try cursor.number()
    guard version >= 1, version <= UInt64(Int32.max) else { throw cursor.corrupted("expected a schema version from 1 to \(Int32.max)") }
    try cursor.expect(#","crc":""#)
    let checksum = try cursor.hexadecimal(UInt32.self)
    try cursor.expect(#"","#)
    var value: Range<Int>?
    if !cursor.skip(#""deleted":true"#) {
      try cursor.expect(#""value":"#)
      value = cursor.offset..<(try endOfValue())
      cursor.offset = value?.upperBound ?? cursor.offset
    }
    try cursor.expect("}")
    let line = Line(
      key: key, revision: revision, schemaVersion: Int(version), checksum: checksum, value: value, text: start..<cursor.offset,
      isOfSameCollection: isOfSameCollection)
    guard checksum == self.checksum(of: line, keyStart: keyStart) else {
      throw RepositoryError(
        .corrupted, "the record does not match its checksum", file: cursor.file, offset: UInt64(cursor.base + start),
        keyHash: key.hash)
    }
    return line
  }

  /// Returns the checksum of a record, computed from the bytes of its line.
  private func checksum(of line: Line, keyStart: Int) -> UInt32 {
    let key = UnsafeRawBufferPointer(rebasing: cursor.bytes[keyStart..<min(keyStart + line.key.byteCount, cursor.bytes.count)])
    var crc = name.withUnsafeBytes { name in
      // A UUID key is a number in memory, but the record's checksum covers the text of the UUID.
      line.key.withChecksummedBytes(key) { key in
        StoredRecord.checksum(
          name, key: key, revision: line.revision, schemaVersion: line.schemaVersion, hasValue: line.value != nil)
      }
    }
    if let value = line.value { crc.update(UnsafeRawBufferPointer(rebasing: cursor.bytes[value])) }
    return crc.value
  }

  /// Reads a key and its closing quotation mark.
  ///
  /// A UUID key is parsed to a number without making a string, since a UUID has no escaped characters.
  private mutating func readKey() throws(RepositoryError) -> RecordKey {
    let end = cursor.offset + UUIDNumber.textCount
    if end < cursor.bytes.count, cursor.bytes[end] == UInt8(ascii: "\""),
      let number = UUIDNumber(text: UnsafeRawBufferPointer(rebasing: cursor.bytes[cursor.offset..<end]))
    {
      cursor.offset = end + 1
      return RecordKey(number)
    }
    return RecordKey(try cursor.string())
  }

  /// Returns the end of the value that begins at the cursor, which is the offset of the line's closing brace.
  private func endOfValue() throws(RepositoryError) -> Int {
    // A value has no line feed, so the line ends at the next line feed. Parsing the value's JSON to find its end would cost more than
    // computing the value's checksum.
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
