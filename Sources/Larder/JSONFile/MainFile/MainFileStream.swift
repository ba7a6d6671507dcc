internal import Foundation

/// A reader that reads a main file piece by piece, with an amount of memory that does not depend on the size of the file.
struct MainFileStream {
  let file: any OpenFile
  /// Path of the main file, for errors.
  let path: String

  /// Number of bytes of the main file that are read at a time, unless a line is longer.
  private static let pieceSize = 1 << 20

  /// The bytes of the main file that are in memory, which begin at the offset `start` of the file.
  private struct Piece {
    var bytes = Data()
    var start = 0
    /// Offset in `bytes` of the next line to read.
    var position = 0

    /// Offset in `bytes` behind the last line feed that another byte follows, or `nil` if there is no such line feed.
    ///
    /// The byte behind a line feed shows whether another line or the seal follows.
    var endOfLines: Int? {
      guard bytes.count > position + 1 else { return nil }
      return bytes[(bytes.startIndex + position)..<(bytes.endIndex - 1)].lastIndex(of: 0x0A).map { $0 - bytes.startIndex + 1 }
    }
  }

  /// Reads the whole main file and compares every checksum.
  ///
  /// - Parameter visit: Called with each line, and with the bytes in which the line's text is a range.
  /// - Returns: The header of the main file.
  /// - Throws: as ``MainFileReader/read(_:begin:)``, and the errors of the closure.
  func read(_ visit: (MainFileReader.Line, Data) throws(RepositoryError) -> Void) throws(RepositoryError) -> MainFileHeader {
    let grammar = MainFileReader(source: .file(file), file: path)
    var seal = SealHash()
    var piece = Piece()
    _ = try more(&piece)
    let (header, position) = try piece.bytes.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: path)
      let header = try grammar.readHeader(&cursor, &seal)
      return (header, cursor.offset)
    }
    piece.position = position
    var count: UInt64 = 0
    var last: RecordAddress?
    while true {
      guard let end = piece.endOfLines else {
        if try more(&piece) { continue }
        break
      }
      let segment = MainFileSegment(data: piece.bytes, commit: header.commit)
      let (lines, position) = try piece.bytes.lending { bytes throws(RepositoryError) in
        var cursor = ByteCursor(bytes, file: path)
        cursor.offset = piece.position
        cursor.base = piece.start
        return try segment.readLines(from: cursor, to: end)
      }
      // `MainFileScanner` has checked the order of the keys within each segment (the lines that are read at a time). The first key of each
      // segment is compared with the last key of the segment before.
      if let last, let first = lines.first, !(last < first.record.address) {
        let offset = UInt64(piece.start + first.text.lowerBound)
        throw RepositoryError(.corrupted, "expected a key after that of the record before", file: path, offset: offset)
      }
      last = lines.last?.record.address ?? last
      count += UInt64(lines.count)
      for line in lines {
        seal.add(line.checksum)
        try visit(line, piece.bytes)
      }
      piece.position = position
      // If no line follows, the rest of the file must be the seal, which `readSeal` checks.
      if position < end || piece.bytes[piece.bytes.startIndex + position] != UInt8(ascii: "{") { break }
    }
    // More bytes are read, because the seal may continue behind the bytes in memory, and because `readSeal` throws if bytes follow the
    // seal.
    while piece.bytes.count < Self.pieceSize, try more(&piece) {}
    try piece.bytes.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: path)
      cursor.offset = piece.position
      cursor.base = piece.start
      try grammar.readSeal(&cursor, seal, count: count)
    }
    return header
  }

  /// Drops the bytes that were already used from memory, and reads the next bytes of the main file.
  ///
  /// - Returns: True if the file had more bytes to read.
  private func more(_ piece: inout Piece) throws(RepositoryError) -> Bool {
    let offset = piece.start + piece.bytes.count
    do throws(RepositoryError) {
      // While a line longer than `pieceSize` is read, each read doubles the bytes in memory. Reads of constant size would copy the line's
      // beginning again and again.
      let next = try file.read(at: offset, count: max(Self.pieceSize, piece.bytes.count - piece.position))
      piece.bytes = Data(piece.bytes[(piece.bytes.startIndex + piece.position)...]) + next
      piece.start += piece.position
      piece.position = 0
      return !next.isEmpty
    } catch {
      throw error.naming(path)
    }
  }
}

extension RepositoryError {
  /// Returns a copy of the error with another path, for a file that was renamed after it was opened.
  func naming(_ path: String) -> RepositoryError {
    RepositoryError(code, message, file: path, offset: offset, keyHash: keyHash, versions: versions, underlying: underlying)
  }
}

/// Consecutive lines of a main file, whose records are returned one by one and not packed.
///
/// Every byte of a line is verified: either the byte itself or a checksum over the byte is compared.
struct MainFileSegment {
  typealias Lines = (lines: [MainFileReader.Line], end: Int)

  let data: Data
  /// Newest commit of the main file.
  let commit: UInt64

  /// Reads the lines that start before an offset, and stops early at a byte that begins no line, such as the first byte of the seal.
  ///
  /// The values of the lines are slices of ``data``.
  /// - Returns: The lines, and the offset behind the last of these lines.
  func readLines(from start: ByteCursor, to end: Int) throws(RepositoryError) -> Lines {
    var scanner = MainFileScanner(start, commit: commit)
    var lines: [MainFileReader.Line] = []
    while let line = try scanner.next(before: end) {
      let value = line.value.map { data[(data.startIndex + $0.lowerBound)..<(data.startIndex + $0.upperBound)] }
      let record = StoredRecord(
        collection: scanner.collection, key: line.key, revision: Revision(line.revision), schemaVersion: line.schemaVersion, value: value)
      // Most lines have about the length of the first line, so the length of the first line gives an estimate of the number of lines. The
      // estimated number is reserved as capacity, so that the array seldom grows.
      if lines.isEmpty { lines.reserveCapacity((end - start.offset) / line.text.count + 1) }
      lines.append(MainFileReader.Line(record: record, text: line.text, checksum: line.checksum))
    }
    return (lines, scanner.cursor.offset)
  }
}
