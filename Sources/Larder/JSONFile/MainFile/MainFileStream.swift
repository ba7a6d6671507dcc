internal import Foundation

/// A reader of a main file piece by piece, so that its size makes no difference to the memory that is needed.
struct MainFileStream {
  let file: any OpenFile
  /// The name of the file, for errors.
  let path: String

  /// The number of bytes that are read at a time; more where a line is longer.
  private static let pieceSize = 1 << 20

  /// The bytes that are being read: a part of the file from `start` on.
  private struct Piece {
    var bytes = Data()
    var start = 0
    /// The offset of the next line in `bytes`.
    var position = 0

    /// Behind the last line feed that has a byte behind it, which says what comes next; `nil` when there is none.
    var endOfLines: Int? {
      guard bytes.count > position + 1 else { return nil }
      return bytes[(bytes.startIndex + position)..<(bytes.endIndex - 1)].lastIndex(of: 0x0A).map { $0 - bytes.startIndex + 1 }
    }
  }

  /// Reads everything, comparing every checksum.
  ///
  /// - Parameter visit: Takes each line with the bytes that its text is a range of.
  /// - Returns: The header.
  /// - Throws: as ``MainFileReader/read(_:begin:)``, and what the closure throws.
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
      // What is not a line is the seal, or must be.
      if position < end || piece.bytes[piece.bytes.startIndex + position] != UInt8(ascii: "{") { break }
    }
    while piece.bytes.count < Self.pieceSize, try more(&piece) {}
    try piece.bytes.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: path)
      cursor.offset = piece.position
      cursor.base = piece.start
      try grammar.readSeal(&cursor, seal, count: count)
    }
    return header
  }

  /// Drops what was read of a piece and reads on behind it.
  /// - Returns: Whether there was more.
  private func more(_ piece: inout Piece) throws(RepositoryError) -> Bool {
    let offset = piece.start + piece.bytes.count
    do throws(RepositoryError) {
      // A line that is longer than a piece is read in steps that double, so that it is not copied again and again.
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
  /// Returns the error with the name that a file has got since it was opened.
  func naming(_ path: String) -> RepositoryError {
    RepositoryError(code, message, file: path, offset: offset, keyHash: keyHash, versions: versions, underlying: underlying)
  }
}

/// A run of a main file's lines, read one by one; every byte of a line is compared, or its checksum.
struct MainFileSegment {
  typealias Lines = (lines: [MainFileReader.Line], end: Int)

  let data: Data
  /// The newest commit of the main file.
  let commit: UInt64

  /// Reads lines from the cursor to an offset, as far as there are any; their values are slices of the data.
  /// - Returns: The lines, and the offset behind the last one.
  func readLines(from start: ByteCursor, to end: Int) throws(RepositoryError) -> Lines {
    var scanner = MainFileScanner(start, commit: commit)
    var lines: [MainFileReader.Line] = []
    while let line = try scanner.next(before: end) {
      let value = line.value.map { data[(data.startIndex + $0.lowerBound)..<(data.startIndex + $0.upperBound)] }
      let record = StoredRecord(
        collection: scanner.collection, key: line.key, revision: Revision(line.revision), schemaVersion: line.schemaVersion, value: value)
      // The first line tells about how many will follow.
      if lines.isEmpty { lines.reserveCapacity((end - start.offset) / line.text.count + 1) }
      lines.append(MainFileReader.Line(record: record, text: line.text, checksum: line.checksum))
    }
    return (lines, scanner.cursor.offset)
  }
}
