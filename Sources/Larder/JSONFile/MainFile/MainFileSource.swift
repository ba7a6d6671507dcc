internal import Foundation

/// The bytes of a main file: in memory, or in an open file that is read piece by piece.
enum MainFileSource: Sendable {
  case data(Data)
  case file(any OpenFile)

  /// Returns up to `count` bytes from an offset; fewer only at the end.
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    switch self {
    case .data(let data):
      let start = min(offset, data.count)
      return data[(data.startIndex + start)..<(data.startIndex + start + min(count, data.count - start))]
    case .file(let file): return try file.read(at: offset, count: count)
    }
  }
}

/// A part of a main file that ends with a line, and is read beside others.
struct MainFilePiece: Sendable {
  /// The bytes, and at least one behind the last line, which says what comes next.
  let bytes: Data
  /// The offset of the bytes in the file.
  let start: Int
  /// The offset in the bytes behind the last line.
  let end: Int

  /// Whether another line follows.
  var isFollowed: Bool { bytes[bytes.startIndex + end] == UInt8(ascii: "{") }

  /// Reads a piece of about a size, more where a line is longer; `nil` where no line is left.
  init?(_ source: MainFileSource, at start: Int, size: Int) throws(RepositoryError) {
    var size = size
    while true {
      let bytes = try source.read(at: start, count: size)
      if let lineFeed = bytes.dropLast().lastIndex(of: 0x0A) {
        (self.bytes, self.start, end) = (bytes, start, lineFeed - bytes.startIndex + 1)
        return
      }
      if bytes.count < size { return nil }
      size *= 2
    }
  }
}
