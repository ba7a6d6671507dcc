internal import Foundation

/// A reader that reads a main file piece by piece, with an amount of memory that does not depend on the size of the file.
struct MainFileStream {
  let file: any OpenFile
  /// Path of the file, for errors.
  let path: String

  /// Number of bytes of the file that are read at a time, or more if a line is longer.
  private static let pieceSize = 1 << 20

  /// The bytes that are being read: a part of the file from `start` on.
  private struct Piece {
    var bytes = Data()
    var start = 0
    /// Offset of the next line in `bytes`.
    var position = 0

    /// Offset behind the last line feed that has a byte behind it, or `nil` if there is none.
    ///
    /// The byte behind a line feed shows whether another line or the seal follows.
    var endOfLines: Int? {
      guard bytes.count > position + 1 else { return nil }
      return bytes[(bytes.startIndex + position)..<(bytes.endIndex - 1)].lastIndex(of: 0x0A).map { $0 - bytes.startIndex + 1 }
    }
  }

  /// Reads the whole file and compares every checksum.
  ///
  /// - Parameter visit: Called with each line, and with the bytes to which the range of the line's text refers.
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
      // The scanner has compared the order of keys within a segment. The first key of a segment is compared here with the last key of the
      // segment before.
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
    // More bytes are read, because the seal may continue behind the piece, and because `readSeal` refuses a file with bytes behind the
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

  /// Drops the bytes of a piece that were read, and reads the following bytes of the file.
  ///
  /// - Returns: True if the file had more bytes.
  private func more(_ piece: inout Piece) throws(RepositoryError) -> Bool {
    let offset = piece.start + piece.bytes.count
    do throws(RepositoryError) {
      // For a line longer than a piece, each read doubles the bytes in memory. Reads of constant size would copy the line's beginning again
      // and again.
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

/// Consecutive lines of a main file, which are read one by one.
///
/// For every byte of a line, the reader compares the byte itself or a checksum over it.
struct MainFileSegment {
  typealias Lines = (lines: [MainFileReader.Line], end: Int)

  let data: Data
  /// Newest commit of the main file.
  let commit: UInt64

  /// Reads the lines that start before an offset, up to the first byte that begins no line, such as the seal.
  ///
  /// The values of the lines are slices of ``data``.
  /// - Returns: The lines, and the offset behind the last one.
  func readLines(from start: ByteCursor, to end: Int) throws(RepositoryError) -> Lines {
    var scanner = MainFileScanner(start, commit: commit)
    var lines: [MainFileReader.Line] = []
    while let line = try scanner.next(before: end) {
      let value = line.value.map { data[(data.startIndex + $0.lowerBound)..<(data.startIndex + $0.upperBound)] }
      let record = StoredRecord(
        collection: scanner.collection, key: line.key, revision: Revision(line.revision), schemaVersion: line.schemaVersion, value: value)
      // Most lines have about the length of the first line, which gives an estimate of their number. The estimated number is reserved as
      // capacity, so that the array seldom grows.
      if lines.isEmpty { lines.reserveCapacity((end - start.offset) / line.text.count + 1) }
      lines.append(MainFileReader.Line(record: record, text: line.text, checksum: line.checksum))
    }
    return (lines, scanner.cursor.offset)
  }
}
