internal import Foundation
internal import Larder

/// Write-ahead log of a SQLite database: the pages of commits that match the log's checksums, and those after damage.
struct SQLiteLog {
  let path: String
  let bytes: [UInt8]
  let pageSize: Int
  /// Newest committed version of each page, as a range of `bytes`.
  private(set) var pages: [Int: Range<Int>] = [:]
  /// Pages after damage that have the salts of this log, up to the last commit among them.
  private(set) var lost: [(number: Int, range: Range<Int>)] = []
  private(set) var problems: [SalvageProblem] = []

  private static let headerSize = 32
  private static let frameHeaderSize = 24

  /// Parses a log.
  ///
  /// Returns `nil` if it holds nothing.
  init?(_ source: SalvageBytes, pageSize mainPageSize: Int) {
    (path, bytes) = (source.path, source.bytes)
    problems = source.problems
    let magic = bytes.bigEndian(UInt32.self, at: 0) ?? 0
    var sum = Sum()
    // The lowest bit of the magic number gives the byte order of the checksums (SQLite's file format, section 4.2).
    let isWhole =
      bytes.count >= Self.headerSize && magic & ~1 == 0x377F_0682 && sum.add(bytes, 0..<24, magic & 1 == 1) == Sum(bytes, at: 24)
    pageSize = isWhole ? Int(bytes.bigEndian(UInt32.self, at: 8) ?? 0) : mainPageSize
    // The size comes from a file that may be damaged, and every frame below is found by it.
    guard pageSize >= 512, pageSize <= 65_536, pageSize.nonzeroBitCount == 1, bytes.contains(where: { $0 != 0 }) else { return nil }
    let frameSize = Self.frameHeaderSize + pageSize
    if !isWhole {
      // A checkpoint of Larder marks a log as empty by these bytes. Its frames are in the database.
      if bytes.holds("LRDR: log empty.", at: 0), bytes.count < 56 || bytes[24..<32] == bytes[40..<48] { return nil }
      problems.append(SalvageProblem(path, offset: 0, "the header of the log is damaged: its rows count where their checksums match"))
      readLost(from: Self.headerSize, salts: bytes.count >= 48 ? Array(bytes[40..<48]) : [], frameSize)
      return
    }
    let salts = Array(bytes[16..<24])
    // Pages count only when the frame that ends their commit was read.
    var pending: [Int: Range<Int>] = [:]
    var offset = Self.headerSize
    // Frames with other salts are left from before the log last began anew.
    while offset + frameSize <= bytes.count, Array(bytes[(offset + 8)..<(offset + 16)]) == salts {
      let page = (offset + Self.frameHeaderSize)..<(offset + frameSize)
      // A frame's checksum covers the first 8 bytes of its header and the page, and continues that of the frame before.
      _ = sum.add(bytes, offset..<(offset + 8), magic & 1 == 1)
      guard sum.add(bytes, page, magic & 1 == 1) == Sum(bytes, at: offset + 16), let number = bytes.bigEndian(UInt32.self, at: offset),
        number > 0
      else { break }
      pending[Int(number)] = page
      // The frame that ends a commit has the size of the database here, and every other one has zero.
      if bytes.bigEndian(UInt32.self, at: offset + 4) != 0 {
        pages.merge(pending) { $1 }
        pending = [:]
      }
      offset += frameSize
    }
    // SQLite ignores everything from the first damaged frame on. Later commits may still be there.
    readLost(from: offset, salts: salts, frameSize)
    let rest = bytes.count - offset
    if !lost.isEmpty {
      problems.append(SalvageProblem(path, offset: offset, "the log is damaged: of what follows, rows count where their checksums match"))
    } else if rest > 0, rest < frameSize, rest < 16 || Array(bytes[(offset + 8)..<(offset + 16)]) == salts {
      // A log consists of whole frames. A write that was cut short and a file that was cut off look the same.
      problems.append(SalvageProblem(path, offset: offset, "the log ends within a frame: a commit may be lost"))
    } else if rest >= frameSize, Array(bytes[(offset + 8)..<(offset + 16)]) == salts {
      problems.append(SalvageProblem(path, offset: offset, "the end of the log is damaged: a commit may be lost"))
    } else if !pending.isEmpty {
      problems.append(SalvageProblem(path, offset: offset, "a commit that was never finished was left out", isLoss: false))
    }
  }

  /// Collects the pages of later frames with the given salts, up to the last frame that ends a commit.
  private mutating func readLost(from start: Int, salts: [UInt8], _ frameSize: Int) {
    var found: [(number: Int, range: Range<Int>)] = []
    var offset = start
    while offset + frameSize <= bytes.count {
      if Array(bytes[(offset + 8)..<(offset + 16)]) == salts, let number = bytes.bigEndian(UInt32.self, at: offset) {
        found.append((Int(number), (offset + Self.frameHeaderSize)..<(offset + frameSize)))
        if bytes.bigEndian(UInt32.self, at: offset + 4) != 0 { lost = found }
      }
      offset += frameSize
    }
  }

  /// Running checksum of the log's format: two words, updated by pairs of words.
  private struct Sum: Equatable {
    private var (first, second): (UInt32, UInt32) = (0, 0)

    init() {}
    init(_ bytes: [UInt8], at offset: Int) {
      (first, second) = (bytes.bigEndian(at: offset) ?? 0, bytes.bigEndian(at: offset + 4) ?? 0)
    }

    mutating func add(_ bytes: [UInt8], _ range: Range<Int>, _ isBigEndian: Bool) -> Sum {
      bytes.withUnsafeBytes { bytes in
        // The checksum takes 8 bytes at a time. All its inputs are a multiple of 8 bytes long.
        for offset in stride(from: range.lowerBound, to: range.upperBound - 7, by: 8) {
          let left = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
          let right = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
          first &+= (isBigEndian ? UInt32(bigEndian: left) : UInt32(littleEndian: left)) &+ second
          second &+= (isBigEndian ? UInt32(bigEndian: right) : UInt32(littleEndian: right)) &+ first
        }
      }
      return self
    }
  }
}
