internal import Foundation
internal import Larder

extension SQLiteLogInspection {
  /// Whether the database holds every page of a log, so that a log with a damaged header has nothing to recover.
  ///
  /// A folded log is marked as empty, and a header is written over the mark by the next commit: a kill may cut either write short.
  /// - Parameters:
  ///   - file: The log.
  ///   - pageSize: The page size of the database.
  ///   - database: A connection that reads the database alone.
  static func isFolded(_ file: any OpenFile, pageSize: Int, into database: SQLiteConnection) throws(RepositoryError) -> Bool {
    guard let newest = try newestPages(file, pageSize: pageSize) else { return false }
    for (page, offset) in newest.sorted(by: { $0.key < $1.key }) {
      let logged = try read(file, at: offset, count: pageSize)
      guard try database.read(at: Int64(page - 1) * Int64(pageSize), count: pageSize).bytes == logged else { return false }
    }
    return true
  }

  /// Returns the offset of each page's newest content in the frames that have the salts of the first one; `nil` unless they end with a
  /// commit.
  private static func newestPages(_ file: any OpenFile, pageSize: Int) throws(RepositoryError) -> [UInt32: Int]? {
    let (size, frameSize) = (try file.size(), frameHeaderSize + pageSize)
    var newest: [UInt32: Int] = [:]
    var (salts, endsWithCommit) = ([UInt8](), false)
    var offset = headerSize
    while offset + frameSize <= size {
      let frame = try read(file, at: offset, count: frameHeaderSize)
      guard frame.count == frameHeaderSize else { break }
      if offset == headerSize { salts = Array(frame[8..<16]) }
      let page = number(frame, 0)
      guard page != 0, frame[8..<16].elementsEqual(salts) else { break }
      newest[page] = offset + frameHeaderSize
      endsWithCommit = number(frame, 4) != 0
      offset += frameSize
    }
    return endsWithCommit ? newest : nil
  }
}
