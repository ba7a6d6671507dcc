internal import Foundation

/// The bytes of a main file: in memory, or in an open file that is read in parts.
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

  /// Returns the number of bytes.
  func size() throws(RepositoryError) -> Int {
    switch self {
    case .data(let data): data.count
    case .file(let file): try file.size()
    }
  }
}
