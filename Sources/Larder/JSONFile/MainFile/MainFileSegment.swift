internal import Foundation

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
