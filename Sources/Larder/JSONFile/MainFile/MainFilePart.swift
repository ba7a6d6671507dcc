internal import Foundation

/// The lines of a main file that begin in a range of it, read beside other parts.
struct MainFilePart: Sendable {
  /// The properties that all parts have in common.
  struct Context: Sendable {
    let source: MainFileSource
    let file: String
    /// The newest commit of the main file.
    let commit: UInt64
    /// The changes of the journal: what they replace is left out.
    let changes: [RecordAddress: StoredRecord]
    /// The limits of records; without them, none is refused.
    let limits: StoreOptions.Limits?
  }

  /// The offset of the first line in the file; `nil` where none begins in the range.
  private(set) var start: Int?
  /// The offset behind the last line.
  private(set) var end = 0
  /// Whether what follows is no line, and so must be the seal.
  private(set) var isLast = false
  private(set) var packs: [RecordPack] = []
  private(set) var tombstones: [StoredRecord] = []
  private(set) var checksums: [UInt32] = []
  /// The addresses of the first and of the last line.
  private(set) var first: RecordAddress?
  private(set) var last: RecordAddress?

  /// The number of bytes that are read behind a range at first, so that its last line mostly ends in them.
  private static let margin = 4_096

  /// Reads the lines that begin in a range.
  /// - Parameter beginsWithLine: Whether the range begins with a line; otherwise the first one comes behind a line feed.
  static func read(_ range: Range<Int>, beginsWithLine: Bool, _ context: Context) -> Result<MainFilePart, RepositoryError> {
    do throws(RepositoryError) {
      var part = MainFilePart()
      try part.read(range, beginsWithLine: beginsWithLine, context)
      return .success(part)
    } catch {
      return .failure(error)
    }
  }

  private mutating func read(_ range: Range<Int>, beginsWithLine: Bool, _ context: Context) throws(RepositoryError) {
    let offset = beginsWithLine ? range.lowerBound : range.lowerBound - 1
    let bound = range.upperBound - offset
    var size = bound + Self.margin
    var bytes = try context.source.read(at: offset, count: size)
    var start = 0
    if !beginsWithLine {
      guard let lineFeed = bytes.firstLineFeed(from: 0), lineFeed + 1 < bound else { return }
      start = lineFeed + 1
    }
    // The last line may end far behind the range, and the byte behind it says what follows.
    while bytes.count == size, bytes.firstLineFeed(from: bound - 1) ?? size >= size - 1 {
      size *= 2
      bytes = try context.source.read(at: offset, count: size)
    }
    try bytes.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: context.file)
      (cursor.base, cursor.offset) = (offset, start)
      try readLines(MainFileScanner(cursor, commit: context.commit), before: bound, context)
    }
    self.start = offset + start
  }

  private mutating func readLines(_ start: MainFileScanner, before bound: Int, _ context: Context) throws(RepositoryError) {
    var scanner = start
    var packer: RecordPacker?
    while let line = try scanner.next(before: bound) {
      if !line.isOfSameCollection {
        if let full = packer { packs.append(full.finish()) }
        packer = nil
        if first == nil { first = RecordAddress(collection: scanner.collection, key: line.key) }
      }
      // The first line tells about how many will follow.
      let count = (bound - line.text.lowerBound) / line.text.count + 1
      if checksums.isEmpty { checksums.reserveCapacity(count) }
      checksums.append(line.checksum)
      guard let value = line.value else {
        tombstones.append(
          StoredRecord(
            collection: scanner.collection, key: line.key, revision: Revision(line.revision), schemaVersion: line.schemaVersion, value: nil)
        )
        continue
      }
      if !context.changes.isEmpty, context.changes[RecordAddress(collection: scanner.collection, key: line.key)] != nil { continue }
      if packer == nil {
        packer = RecordPacker(
          scanner.collection, limits: context.limits, capacity: scanner.cursor.bytes.count - line.text.lowerBound, recordCapacity: count)
      }
      packer?.append(
        line.key, revision: Revision(line.revision), schemaVersion: line.schemaVersion,
        value: UnsafeRawBufferPointer(rebasing: scanner.cursor.bytes[value]))
    }
    if let packer { packs.append(packer.finish()) }
    if let key = scanner.last { last = RecordAddress(collection: scanner.collection, key: key) }
    end = scanner.cursor.base + scanner.cursor.offset
    isLast = scanner.cursor.next != UInt8(ascii: "{")
  }
}

extension Data {
  /// Returns the offset of the first line feed from an offset on.
  fileprivate func firstLineFeed(from offset: Int) -> Int? {
    withUnsafeBytes { bytes in
      guard offset < bytes.count, let base = bytes.baseAddress, let found = memchr(base + offset, 0x0A, bytes.count - offset) else {
        return nil
      }
      return base.distance(to: UnsafeRawPointer(found))
    }
  }
}
