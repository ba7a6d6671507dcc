internal import Foundation

/// A writer that writes a main file line by line into a new file.
struct MainFileWriter {
  private let file: any OpenFile
  private var buffer: [UInt8] = []
  private var written = 0
  private var count = 0
  private var seal = SealHash()
  /// Background work that writes the main file, or `nil`.
  ///
  /// The writer throws if the background work is cancelled.
  var work: BackgroundWork<MainFile>?
  private var synced = 0
  /// Builder of the index of the main file, or `nil` for a main file without an index.
  private var indexer: MainFileIndexer?
  /// Offset in the buffer of the first byte that was not passed to the indexer yet.
  private var unindexed = 0

  /// Number of bytes that are collected in memory before a write to the file.
  private static let bufferSize = 1 << 20
  /// Number of bytes that a background checkpoint writes between two syncs, because the sync of a commit may wait for a running sync.
  private static let syncSize = 2 << 20

  init(_ file: any OpenFile, _ header: MainFileHeader, isIndexed: Bool = false) {
    self.file = file
    append(MainFileFormat.opening)
    buffer += Array(
      #"\#(MainFileFormat.version),"store":"\#(header.storeID.uuidString)","generation":\#(header.generation),"commit":\#(header.commit),"#
        .utf8)
    buffer += Array(#""tombstonesSince":\#(header.tombstonesSince)"#.utf8)
    if let salt = header.folded { buffer += Array(#","folded":"\#(Hexadecimal.string(salt))""#.utf8) }
    if let salt = header.journal { buffer += Array(#","journal":"\#(Hexadecimal.string(salt))""#.utf8) }
    // The header's checksum covers only the bytes before the checksum.
    let checksum = buffer.withUnsafeBytes { CRC32C.checksum($0) }
    seal.add(checksum)
    buffer += Array(#","crc":"\#(Hexadecimal.string(checksum))","records":["#.utf8)
    // The header line ends with the line feed that the first line or the seal appends.
    if isIndexed { indexer = (buffer + [0x0A]).withUnsafeBytes { MainFileIndexer(header: $0) } }
    unindexed = buffer.count + 1
  }

  /// Adds a record or a tombstone as the next line of the main file.
  ///
  /// Records must be added in the order of their addresses (collection and key).
  mutating func add(_ record: StoredRecord) throws(RepositoryError) {
    try beginLine(record, record.checksum)
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

  /// Copies a line of an older main file as the next line, where the reader has already compared the line's checksum.
  mutating func add(_ line: MainFileReader.Line, text: Data) throws(RepositoryError) {
    try beginLine(line.record, line.checksum)
    buffer.append(contentsOf: text)
  }

  /// Writes the seal (the last line, with a hash of all checksums) and syncs the main file.
  ///
  /// The main file is durable under its final name only after the caller has renamed it and synced the directory.
  /// - Returns: The index of the main file, or `nil` for a main file without an index.
  @discardableResult
  mutating func finish() throws(RepositoryError) -> MainFileIndex? {
    append("\n")
    Self.pass(buffer, from: &unindexed, to: &indexer)
    let (start, offset) = (buffer.count, written + buffer.count)
    append("]")
    buffer += Array(#","count":\#(count),"hash":"\#(Hexadecimal.string(seal.value))"}"#.utf8)
    append("\n")
    let index = indexer.map { indexer in
      buffer.withUnsafeBytes { indexer.finish(at: offset, seal: UnsafeRawBufferPointer(rebasing: $0[start...])) }
    }
    try flush()
    // The contents are synced before the caller renames the file, because otherwise a power cut could leave the new name without the
    // contents.
    try file.sync()
    return index
  }

  private mutating func beginLine(_ record: StoredRecord, _ checksum: UInt32) throws(RepositoryError) {
    append(count == 0 ? "\n" : ",\n")
    count += 1
    seal.add(checksum)
    Self.pass(buffer, from: &unindexed, to: &indexer)
    if buffer.count >= Self.bufferSize { try flush() }
    indexer?.begin(record, at: written + buffer.count)
  }

  /// Passes the bytes that were appended to the buffer since the last call to the indexer.
  private static func pass(_ buffer: [UInt8], from start: inout Int, to indexer: inout MainFileIndexer?) {
    guard indexer != nil else { return }
    buffer.withUnsafeBytes { indexer?.append(UnsafeRawBufferPointer(rebasing: $0[min(start, $0.count)...])) }
    start = buffer.count
  }

  private mutating func flush() throws(RepositoryError) {
    let offset = written
    try buffer.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
    written += buffer.count
    unindexed -= buffer.count
    buffer.removeAll(keepingCapacity: true)
    guard let work else { return }
    try work.check()
    // Without syncs during the writing, one sync at the end would write the whole file, and the sync of a commit would wait for it.
    if written - synced >= Self.syncSize {
      try file.sync()
      synced = written
    }
  }

  private mutating func append(_ text: StaticString) {
    text.withUTF8Buffer { buffer.append(contentsOf: $0) }
  }

  /// Appends a string in the only spelling that the file format allows, with control characters as `\u00xx`.
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
