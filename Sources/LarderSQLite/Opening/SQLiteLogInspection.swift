internal import Foundation
internal import Larder

/// A walk through the frames of a write-ahead log, which finds the part that SQLite will recover and the part that it will ignore.
///
/// A frame is one page with a header of 24 bytes. SQLite ignores a log from the first frame whose checksum does not match. That is right
/// for a torn last write, and silent loss of acknowledged commits for a damaged byte. The inspection distinguishes the two, so that opening
/// can refuse or report.
struct SQLiteLogInspection {
  /// Number of transactions in the write-ahead log that SQLite recovers.
  private(set) var transactions = 0
  /// Whether SQLite can read the write-ahead log's header, without which it ignores the whole log.
  private(set) var isHeaderWhole = true
  /// Offset of the part that SQLite ignores although it belongs to this log, or `nil` when there is none.
  private(set) var lostOffset: Int?
  /// Number of bytes of the write-ahead log that SQLite ignores although they belong to it.
  private(set) var lostCount = 0
  /// Whether the ignored part of the write-ahead log holds a whole transaction and the beginning of a later one.
  ///
  /// A durable commit is synced before the next one is written. So acknowledged commits are lost, unless some were buffered.
  private(set) var holdsLaterCommit = false
  /// Offset of the frames of a transaction without a COMMIT, or `nil` when there are none.
  private(set) var unfinishedOffset: Int?

  static let headerSize = 32
  /// Bytes written over the header of a write-ahead log that is empty and keeps its space, which SQLite takes for an empty log.
  ///
  /// Not zeros alone, which a damaged log may begin with. Zeros where a header has its salts, which SQLite compares with those of its index
  /// in cases in which it must not write the index. Behind them are the salts of the frames that are left in the log.
  static let emptyMark = Array("LRDR: log empty.".utf8) + [UInt8](repeating: 0, count: 8)

  /// Whether a write-ahead log has no bytes, or the mark of an empty log over frames of the salts in that mark.
  static func isEmpty(_ file: any OpenFile) throws(RepositoryError) -> Bool {
    if try file.size() == 0 { return true }
    let start = try read(file, at: 0, count: headerSize + frameHeaderSize)
    guard start.count >= headerSize, start.starts(with: emptyMark) else { return false }
    // Frames of other salts were written after the mark: the header that was written over it is lost.
    return start.count < headerSize + frameHeaderSize || start[24..<32] == start[40..<48]
  }

  static let frameHeaderSize = 24

  /// Reads bytes of a file, fewer only where it ends.
  ///
  /// A disk that returns fewer bytes than there are would make a whole log look torn, and its commits would be cut from it. A second read
  /// returns more bytes if another process has made the log longer meanwhile.
  /// - Throws: `.inputOutput` if a second read returns no more bytes.
  static func read(_ file: any OpenFile, at offset: Int, count: Int) throws(RepositoryError) -> [UInt8] {
    var countBefore = -1
    while true {
      let bytes = try [UInt8](file.read(at: offset, count: count))
      guard bytes.count < count, try file.size() > offset + bytes.count else { return bytes }
      guard bytes.count > countBefore else {
        throw RepositoryError(
          .inputOutput, "expected \(count) bytes of the file, the disk gave \(bytes.count): check the disk, and try again",
          file: file.path, offset: UInt64(offset))
      }
      countBefore = bytes.count
    }
  }

  /// Whether SQLite can read the header of a write-ahead log.
  static func isHeaderWhole(_ file: any OpenFile) throws(RepositoryError) -> Bool {
    let header = try read(file, at: 0, count: headerSize)
    return header.count == headerSize && isWhole(header)
  }

  private static func isWhole(_ header: [UInt8]) -> Bool {
    number(header, 0) & ~1 == 0x377F_0682 && Sum(0, 0).adding(header[0..<24], header[3] & 1 == 1) == Sum(header, at: 24)
  }

  /// Reads through all frames of a write-ahead log.
  ///
  /// - Parameter pageSize: The page size of the database, in case the log's header is damaged.
  init(_ file: any OpenFile, pageSize: Int) throws(RepositoryError) {
    let size = try file.size()
    guard size > 0 else { return }
    let header = try Self.read(file, at: 0, count: Self.headerSize)
    guard header.count == Self.headerSize else {
      (isHeaderWhole, lostOffset, lostCount) = (false, 0, size)
      return
    }
    let frameSize = Self.frameHeaderSize + pageSize
    let isBigEndian = header[3] & 1 == 1
    var running = Sum(header, at: 24)
    var salts = Array(header[16..<24])
    isHeaderWhole = Self.isWhole(header) && Self.number(header, 8) == UInt32(pageSize)
    if !isHeaderWhole { lose(at: 0) }

    var offset = Self.headerSize
    var sawCommit = false
    var chainIsOurs = isHeaderWhole  // whether the checksum of the frame before belongs to this generation
    var end = lostOffset == nil ? 0 : offset
    while offset + frameSize <= size {
      let frame = try Self.read(file, at: offset, count: frameSize)
      guard frame.count == frameSize else { break }
      // Without a header, the first frame shows the salts of the log.
      if !isHeaderWhole && offset == Self.headerSize { salts = Array(frame[8..<16]) }
      let stored = Sum(frame, at: 16)
      let hasSalts = frame[8..<16].elementsEqual(salts)
      let isChained =
        Self.number(frame, 0) != 0
        && running.adding(frame[0..<8], isBigEndian).adding(frame[Self.frameHeaderSize...], isBigEndian) == stored
      let isCommit = Self.number(frame, 4) != 0
      if lostOffset == nil && hasSalts && isChained {
        if isCommit { transactions += 1 }
        unfinishedOffset = isCommit ? nil : unfinishedOffset ?? offset
      } else {
        // Frames of an earlier generation, from before the log's last restart, have neither these salts nor this chain. They chain to each
        // other, though. So a chain proves something only behind a frame of this generation whose own checksum is right: a write that was
        // cut short leaves an older one. A page without its header belongs to no earlier generation: the log was zeros there, or has become
        // so.
        let isBlank = lostOffset == nil && frame[..<Self.frameHeaderSize].allSatisfy { $0 == 0 } && frame.contains { $0 != 0 }
        lose(at: offset)
        let isNewer = isHeaderWhole && Self.isNewer(Self.number(frame, 8), than: Self.number(header, 16))
        let isOurs = hasSalts || isBlank || isNewer || isChained && chainIsOurs
        chainIsOurs = isOurs && isChained
        if isOurs { end = offset + frameSize }
        if isOurs && isChained {
          if sawCommit { holdsLaterCommit = true }
          if isCommit { sawCommit = true }
        }
      }
      running = stored
      offset += frameSize
    }
    if offset < size {
      // A log consists of whole frames. Part of a frame is torn if all frames before it belong to this generation, and the part does, too:
      // a program may have shortened the log within an older frame.
      let rest = try Self.read(file, at: offset, count: 16)
      let isOlder = rest.count == 16 && !rest[8...].elementsEqual(salts) && rest.contains { $0 != 0 }
      if lostOffset == nil && !isOlder || end == offset { end = size }
      lose(at: offset)
    }
    if let lostOffset, end > lostOffset { lostCount = end - lostOffset } else { lostOffset = nil }
  }

  /// Whether the first salt of a frame is 1 to 16 above a header's, as that of a later generation is.
  ///
  /// Then an older header is in the place of the log's own, which was synced before its frames were written. Each generation adds one to
  /// the salt. A log that another program began anew has random salts: frames that are left from before it look later in one of 270
  /// million.
  private static func isNewer(_ salt: UInt32, than other: UInt32) -> Bool { (1...16).contains(salt &- other) }

  private mutating func lose(at offset: Int) {
    if lostOffset == nil { lostOffset = offset }
  }

  static func number(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
    bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// The running checksum of the write-ahead log's format: two words of 32 bits over pairs of words.
  private struct Sum: Equatable {
    var first: UInt32
    var second: UInt32

    init(_ first: UInt32, _ second: UInt32) { (self.first, self.second) = (first, second) }
    init(_ bytes: [UInt8], at offset: Int) { self.init(number(bytes, offset), number(bytes, offset + 4)) }

    func adding(_ bytes: ArraySlice<UInt8>, _ isBigEndian: Bool) -> Sum {
      var (first, second) = (first, second)
      bytes.withUnsafeBytes { bytes in
        for offset in stride(from: 0, to: bytes.count - 7, by: 8) {
          let left = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
          let right = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
          first &+= (isBigEndian ? UInt32(bigEndian: left) : UInt32(littleEndian: left)) &+ second
          second &+= (isBigEndian ? UInt32(bigEndian: right) : UInt32(littleEndian: right)) &+ first
        }
      }
      return Sum(first, second)
    }
  }
}

extension SQLitePath {
  /// Whether there is a write-ahead log that has something to recover.
  /// - Parameter isJudged: True to treat a log with a damaged header as none, as SQLite does.
  /// - Throws: `.corrupted` where such a log proves that acknowledged commits were lost, by a commit that is not its last.
  func hasLog(on fileSystem: any FileSystem, isJudged: Bool = false) throws(RepositoryError) -> Bool {
    guard let file = try fileSystem.open(log, writable: false) else { return false }
    if try SQLiteLogInspection.isEmpty(file) { return false }
    guard isJudged, try !SQLiteLogInspection.isHeaderWhole(file) else { return true }
    guard let log = try SQLiteOpening.inspect(file, self) else { return false }
    let row = try SQLiteOpening.foldedRow(self)
    try SQLiteOpening.judge(log, self, isBuffered: row?.isBuffered ?? false, .cutAndReport)
    return false
  }
}

extension SQLiteLogInspection {
  /// Whether the database holds every page of a write-ahead log, so that a log with a damaged header has nothing to recover.
  ///
  /// A checkpoint marks the log as empty, and the next commit writes a header over the mark. A kill may cut either write short.
  /// - Parameters:
  ///   - file: The log.
  ///   - pageSize: The page size of the database.
  ///   - database: A connection that reads the database alone.
  static func isFolded(_ file: any OpenFile, pageSize: Int, into database: SQLiteConnection) throws(RepositoryError) -> Bool {
    guard let newest = try newestPages(file, pageSize: pageSize) else { return false }
    // In the order of the file, which reads the database once from front to back.
    for (page, offset) in newest.sorted(by: { $0.key < $1.key }) {
      let logged = try read(file, at: offset, count: pageSize)
      guard try database.read(at: Int64(page - 1) * Int64(pageSize), count: pageSize).bytes == logged else { return false }
    }
    return true
  }

  /// Returns the offset of each page's newest content in the frames that have the salts of the first one.
  ///
  /// Returns `nil` unless those frames end with a commit.
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
      // Frames of other salts are of an earlier generation, whose pages the database has.
      guard page != 0, frame[8..<16].elementsEqual(salts) else { break }
      newest[page] = offset + frameHeaderSize
      endsWithCommit = number(frame, 4) != 0
      offset += frameSize
    }
    return endsWithCommit ? newest : nil
  }
}
