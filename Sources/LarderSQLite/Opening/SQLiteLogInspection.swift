internal import Foundation
internal import Larder

/// A scan of the frames of a write-ahead log, which finds the part that SQLite will recover and the part that it will ignore.
///
/// A frame is one page with a header of 24 bytes. SQLite ignores a log from the first frame whose checksum does not match. After a torn
/// last write, ignoring the rest of the log loses no acknowledged commit. After a damaged byte in the middle of the log, acknowledged
/// commits would vanish without an error. The inspection distinguishes a torn end from a damaged log, so that opening can report a torn end
/// and refuse a damaged log.
struct SQLiteLogInspection {
  /// Number of transactions in the write-ahead log that SQLite recovers.
  private(set) var transactions = 0
  /// Whether SQLite can read the write-ahead log's header, without which it ignores the whole log.
  private(set) var isHeaderWhole = true
  /// Offset from which on SQLite ignores frames that belong to the current write-ahead log, or `nil` when it ignores none.
  private(set) var lostOffset: Int?
  /// Number of bytes that SQLite ignores although they belong to the current write-ahead log.
  private(set) var lostCount = 0
  /// Whether the ignored part of the write-ahead log holds a whole transaction and the beginning of a later one.
  ///
  /// A durable commit is synced before the next commit is written. If a later transaction follows the damage, acknowledged commits are
  /// therefore lost, unless some commits were buffered and not synced.
  private(set) var holdsLaterCommit = false
  /// Offset of the first frame of a transaction at the end of the log that lacks its COMMIT, or `nil` when there is no such transaction.
  private(set) var unfinishedOffset: Int?
  /// Numbers of the pages that the last transaction has written, among the transactions that SQLite recovers.
  private(set) var lastPages: Set<UInt32> = []

  static let headerSize = 32
  /// Bytes that replace the header of a write-ahead log that is empty and keeps its space.
  ///
  /// SQLite treats a write-ahead log that begins with `emptyMark` as empty.
  ///
  /// The mark of an empty log begins with text, because a damaged log may begin with zeros. In place of a header's salts, the mark of an
  /// empty log has zeros, because SQLite compares these bytes with the salts in the log's index if it must not write the index. The mark is
  /// followed by the salts of the frames that are left in the log.
  static let emptyMark = Array("LRDR: log empty.".utf8) + [UInt8](repeating: 0, count: 8)

  /// Whether a write-ahead log has no bytes, or has the mark of an empty log followed by frames with the salts that stand after the mark.
  static func isEmpty(_ file: any OpenFile) throws(RepositoryError) -> Bool {
    if try file.size() == 0 { return true }
    let start = try read(file, at: 0, count: headerSize + frameHeaderSize)
    guard start.count >= headerSize, start.starts(with: emptyMark) else { return false }
    // Frames with other salts than those after the mark were written later than the mark. The header of the later frames is lost, so such a
    // log is damaged and not empty.
    return start.count < headerSize + frameHeaderSize || start[24..<32] == start[40..<48]
  }

  static let frameHeaderSize = 24

  /// Reads bytes of a file, and returns fewer than `count` only if the file ends there.
  ///
  /// A disk that returns fewer bytes than the file has would make a whole log look torn, and opening would cut commits from it. If another
  /// process has made the log longer meanwhile, a second read returns more bytes.
  /// - Throws: `.inputOutput` if a second read returns no more bytes than the first.
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
  /// - Parameter pageSize: The page size of the database, because the page size in the log's header may be damaged.
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
    var pages: Set<UInt32> = []
    var sawCommit = false
    var chainIsOurs = isHeaderWhole  // whether the previous frame belongs to the log's current generation
    var end = lostOffset == nil ? 0 : offset
    while offset + frameSize <= size {
      let frame = try Self.read(file, at: offset, count: frameSize)
      guard frame.count == frameSize else { break }
      // If the log's header is damaged, the salts of the first frame are used in place of the header's salts.
      if !isHeaderWhole && offset == Self.headerSize { salts = Array(frame[8..<16]) }
      let stored = Sum(frame, at: 16)
      let hasSalts = frame[8..<16].elementsEqual(salts)
      let isChained =
        Self.number(frame, 0) != 0
        && running.adding(frame[0..<8], isBigEndian).adding(frame[Self.frameHeaderSize...], isBigEndian) == stored
      let isCommit = Self.number(frame, 4) != 0
      if lostOffset == nil && hasSalts && isChained {
        pages.insert(Self.number(frame, 0))
        if isCommit {
          transactions += 1
          (lastPages, pages) = (pages, [])
        }
        unfinishedOffset = isCommit ? nil : unfinishedOffset ?? offset
      } else {
        // SQLite begins a log anew by writing from its start with new salts, so frames of an earlier generation may stand behind the new
        // frames. Old frames have neither the new salts nor a checksum that continues from the new frames, but each continues the checksum
        // of the old frame before it. A matching checksum therefore shows that a frame belongs to the current generation only if the frame
        // before it belongs to this generation and has a right checksum. A write that was cut short can leave an old frame behind the new
        // frames. A page whose frame header is zeros belongs to no earlier generation: either the log had only zeros at that place, or
        // damage has set the frame header to zeros.
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
      // A log consists of whole frames. A partial frame at the end is torn if it and all frames before it belong to the log's current
      // generation. A partial frame of an earlier generation is not torn, because a program may have shortened the log within an old frame.
      let rest = try Self.read(file, at: offset, count: 16)
      let isOlder = rest.count == 16 && !rest[8...].elementsEqual(salts) && rest.contains { $0 != 0 }
      if lostOffset == nil && !isOlder || end == offset { end = size }
      lose(at: offset)
    }
    if let lostOffset, end > lostOffset { lostCount = end - lostOffset } else { lostOffset = nil }
  }

  /// Whether the first salt of a frame is 1 to 16 above the header's salt, as in frames of a later generation of the log.
  ///
  /// Each generation of a write-ahead log adds one to the salt, and syncs its header before it writes its frames. A newer frame under an
  /// older header therefore shows that the header of the newer generation was lost. If another program began the log anew, the salts are
  /// random, and old frames look like later ones in one of 270 million cases.
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
  /// Whether the store has a write-ahead log that is not empty.
  ///
  /// - Parameter isJudged: True to treat a log with a damaged header as absent, as SQLite does.
  /// - Throws: `.corrupted` if a log with a damaged header holds a whole commit that is not its last, so that acknowledged commits are
  ///   lost.
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
  /// A checkpoint writes the mark of an empty log over the log's header, and the next commit writes a header over the mark. If the process
  /// is killed during either write, the header is damaged, but no commit is lost.
  /// - Parameters:
  ///   - file: The write-ahead log.
  ///   - pageSize: The page size of the database.
  ///   - database: A connection that reads the database file without its log.
  static func isFolded(_ file: any OpenFile, pageSize: Int, into database: SQLiteConnection) throws(RepositoryError) -> Bool {
    guard let newest = try newestPages(file, pageSize: pageSize) else { return false }
    // The pages are compared in the order of the database file, so that the file is read once from front to back.
    for (page, offset) in newest.sorted(by: { $0.key < $1.key }) {
      let logged = try read(file, at: offset, count: pageSize)
      guard try database.read(at: Int64(page - 1) * Int64(pageSize), count: pageSize).bytes == logged else { return false }
    }
    return true
  }

  /// Returns the offset of each page's newest content among the frames that have the salts of the first frame.
  ///
  /// The result is `nil` unless the last frame with these salts ends a commit.
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
      // Frames with other salts belong to an earlier generation of the log, whose pages a checkpoint has already copied into the database.
      guard page != 0, frame[8..<16].elementsEqual(salts) else { break }
      newest[page] = offset + frameHeaderSize
      endsWithCommit = number(frame, 4) != 0
      offset += frameSize
    }
    return endsWithCommit ? newest : nil
  }
}
