internal import Foundation

/// A writer of a main file, line by line, into a temporary file.
struct MainFileWriter {
  private let file: any OpenFile
  private var buffer: [UInt8] = []
  private var written = 0
  private var count = 0
  private var seal = SealHash()
  /// Background work in which the main file is written, if any, which the writer checks for cancellation.
  var work: BackgroundWork<MainFile>?
  private var synced = 0

  /// Number of bytes that are collected in memory before a write to the file.
  private static let bufferSize = 1 << 20
  /// Number of bytes between two syncs of a background checkpoint, because a commit's own sync may wait for one of them.
  private static let syncSize = 2 << 20

  init(_ file: any OpenFile, _ header: MainFileHeader) {
    self.file = file
    append(MainFileFormat.opening)
    buffer += Array(
      #"\#(MainFileFormat.version),"store":"\#(header.storeID.uuidString)","generation":\#(header.generation),"commit":\#(header.commit),"#
        .utf8)
    buffer += Array(#""tombstonesSince":\#(header.tombstonesSince)"#.utf8)
    if let salt = header.folded { buffer += Array(#","folded":"\#(Hexadecimal.string(salt))""#.utf8) }
    if let salt = header.journal { buffer += Array(#","journal":"\#(Hexadecimal.string(salt))""#.utf8) }
    // The header's checksum covers the bytes before it, because it cannot cover itself.
    let checksum = buffer.withUnsafeBytes { CRC32C.checksum($0) }
    seal.add(checksum)
    buffer += Array(#","crc":"\#(Hexadecimal.string(checksum))","records":["#.utf8)
  }

  /// Adds a record or a tombstone as the next line of the main file.
  ///
  /// Records must be added in the order of their addresses (collection and key).
  mutating func add(_ record: StoredRecord) throws(RepositoryError) {
    try beginLine(record.checksum)
    append(#"{"in":""#)
    appendEscaped(RecordKey(record.collection))
    append(#"","id":""#)
    appendEscaped(record.key)
    buffer += Array(
      #"","rev":\#(record.revision.number),"version":\#(record.schemaVersion),"crc":"\#(Hexadecimal.string(record.checksum))","#.utf8)
    if let value = record.value {
      append(#""value":"#)
      buffer.append(contentsOf: value)
    } else {
      append(#""deleted":true"#)
    }
    append("}")
  }

  /// Adds a record as a line of an older main file, whose checksum the reader has compared.
  mutating func add(line: Data, checksum: UInt32) throws(RepositoryError) {
    try beginLine(checksum)
    buffer.append(contentsOf: line)
  }

  /// Writes the seal and makes the main file durable.
  ///
  /// The caller then renames the file into place.
  mutating func finish() throws(RepositoryError) {
    append("\n]")
    buffer += Array(#","count":\#(count),"hash":"\#(Hexadecimal.string(seal.value))"}"#.utf8)
    append("\n")
    try flush()
    // The contents are synced before the caller renames the file, because otherwise a power cut could leave the new name without the
    // contents.
    try file.sync()
  }

  private mutating func beginLine(_ checksum: UInt32) throws(RepositoryError) {
    append(count == 0 ? "\n" : ",\n")
    count += 1
    seal.add(checksum)
    if buffer.count >= Self.bufferSize { try flush() }
  }

  private mutating func flush() throws(RepositoryError) {
    let offset = written
    try buffer.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
    written += buffer.count
    buffer.removeAll(keepingCapacity: true)
    guard let work else { return }
    try work.check()
    // Without these syncs, one sync at the end would write the whole file, and the sync of a commit would wait for it.
    if written - synced >= Self.syncSize {
      try file.sync()
      synced = written
    }
  }

  private mutating func append(_ text: StaticString) {
    text.withUTF8Buffer { buffer.append(contentsOf: $0) }
  }

  /// Appends a string in the only spelling that the format allows, with control characters as `\u00xx`.
  private mutating func appendEscaped(_ key: RecordKey) {
    key.withBytes { bytes in
      for byte in bytes {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): buffer += [UInt8(ascii: "\\"), byte]
        case 0..<0x20: buffer += "\\u00\(Hexadecimal.string(byte))".utf8
        default: buffer.append(byte)
        }
      }
    }
  }
}
