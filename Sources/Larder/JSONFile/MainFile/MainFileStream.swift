internal import Foundation

/// A reader of a main file piece by piece, whose memory does not depend on the size of the file.
struct MainFileStream {
  let file: any OpenFile
  /// Path of the file, for errors.
  let path: String

  /// Number of bytes that are read at a time, or more if a line is longer.
  private static let pieceSize = 1 << 20

  /// The bytes that are being read: a part of the file from `start` on.
  private struct Piece {
    var bytes = Data()
    var start = 0
    /// Offset of the next line in `bytes`.
    var position = 0

    /// Offset behind the last line feed that has a byte behind it, or `nil` if there is none.
    ///
    /// That byte shows whether a line or the seal follows.
    var endOfLines: Int? {
      guard bytes.count > position + 1 else { return nil }
      return bytes[(bytes.startIndex + position)..<(bytes.endIndex - 1)].lastIndex(of: 0x0A).map { $0 - bytes.startIndex + 1 }
    }
  }

  /// Reads the whole file and compares every checksum.
  ///
  /// - Parameter visit: Called with each line and the bytes that its text is a range of.
  /// - Returns: The header.
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
      // Within a segment the scanner has compared the order.
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
      // The rest must be the seal, which `readSeal` checks.
      if position < end || piece.bytes[piece.bytes.startIndex + position] != UInt8(ascii: "{") { break }
    }
    // The seal may be cut by the end of the piece. Bytes behind it are damage and must be seen.
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
  /// - Returns: True if there were more.
  private func more(_ piece: inout Piece) throws(RepositoryError) -> Bool {
    let offset = piece.start + piece.bytes.count
    do throws(RepositoryError) {
      // A line longer than a piece is read in steps that double: constant steps would copy it again and again.
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
  /// Returns the error with the path that a file has got by a rename after it was opened.
  func naming(_ path: String) -> RepositoryError {
    RepositoryError(code, message, file: path, offset: offset, keyHash: keyHash, versions: versions, underlying: underlying)
  }
}

/// A run of a main file's lines, read one by one.
///
/// Every byte of a line, or its checksum, is compared.
struct MainFileSegment {
  typealias Lines = (lines: [MainFileReader.Line], end: Int)

  let data: Data
  /// Newest commit of the main file.
  let commit: UInt64

  /// Reads lines from the cursor to an offset, as far as there are any.
  ///
  /// Their values are slices of the data.
  /// - Returns: The lines, and the offset behind the last one.
  func readLines(from start: ByteCursor, to end: Int) throws(RepositoryError) -> Lines {
    var scanner = MainFileScanner(start, commit: commit)
    var lines: [MainFileReader.Line] = []
    while let line = try scanner.next(before: end) {
      let value = line.value.map { data[(data.startIndex + $0.lowerBound)..<(data.startIndex + $0.upperBound)] }
      let record = StoredRecord(
        collection: scanner.collection, key: line.key, revision: Revision(line.revision), schemaVersion: line.schemaVersion, value: value)
      // Most lines have about the length of the first one, so that the array need not grow.
      if lines.isEmpty { lines.reserveCapacity((end - start.offset) / line.text.count + 1) }
      lines.append(MainFileReader.Line(record: record, text: line.text, checksum: line.checksum))
    }
    return (lines, scanner.cursor.offset)
  }
}
