internal import Foundation
internal import Larder

/// A write-ahead log: the pages of its commits as far as their checksums match, and the frames behind damage.
struct SQLiteLog {
  let path: String
  let bytes: [UInt8]
  let pageSize: Int
  /// The newest committed page of each number, as a range of the bytes.
  private(set) var pages: [Int: Range<Int>] = [:]
  /// The pages of frames behind damage that belong to this log, up to the last commit among them.
  private(set) var lost: [(number: Int, range: Range<Int>)] = []
  private(set) var problems: [SalvageProblem] = []

  private static let headerSize = 32
  private static let frameHeaderSize = 24

  /// Reads a log; `nil` for one that holds nothing.
  init?(_ source: SalvageBytes, pageSize mainPageSize: Int) {
    (path, bytes) = (source.path, source.bytes)
    problems = source.problems
    let magic = bytes.bigEndian(UInt32.self, at: 0) ?? 0
    var sum = Sum()
    let isWhole =
      bytes.count >= Self.headerSize && magic & ~1 == 0x377F_0682 && sum.add(bytes, 0..<24, magic & 1 == 1) == Sum(bytes, at: 24)
    pageSize = isWhole ? Int(bytes.bigEndian(UInt32.self, at: 8) ?? 0) : mainPageSize
    guard pageSize >= 512, pageSize <= 65_536, pageSize.nonzeroBitCount == 1, bytes.contains(where: { $0 != 0 }) else { return nil }
    let frameSize = Self.frameHeaderSize + pageSize
    if !isWhole {
      // A checkpoint has marked the log as empty, and its frames are in the database.
      if bytes.holds("LRDR: log empty.", at: 0), bytes.count < 56 || bytes[24..<32] == bytes[40..<48] { return nil }
      problems.append(SalvageProblem(path, offset: 0, "the header of the log is damaged: its rows count where their checksums match"))
      readLost(from: Self.headerSize, salts: bytes.count >= 48 ? Array(bytes[40..<48]) : [], frameSize)
      return
    }
    let salts = Array(bytes[16..<24])
    var pending: [Int: Range<Int>] = [:]
    var offset = Self.headerSize
    while offset + frameSize <= bytes.count, Array(bytes[(offset + 8)..<(offset + 16)]) == salts {
      let page = (offset + Self.frameHeaderSize)..<(offset + frameSize)
      _ = sum.add(bytes, offset..<(offset + 8), magic & 1 == 1)
      guard sum.add(bytes, page, magic & 1 == 1) == Sum(bytes, at: offset + 16), let number = bytes.bigEndian(UInt32.self, at: offset),
        number > 0
      else { break }
      pending[Int(number)] = page
      if bytes.bigEndian(UInt32.self, at: offset + 4) != 0 {
        pages.merge(pending) { $1 }
        pending = [:]
      }
      offset += frameSize
    }
    readLost(from: offset, salts: salts, frameSize)
    let rest = bytes.count - offset
    if !lost.isEmpty {
      problems.append(SalvageProblem(path, offset: offset, "the log is damaged: of what follows, rows count where their checksums match"))
    } else if rest > 0, rest < frameSize, rest < 16 || Array(bytes[(offset + 8)..<(offset + 16)]) == salts {
      // A log consists of whole frames: a write that was not finished and a file that was cut off look the same.
      problems.append(SalvageProblem(path, offset: offset, "the log ends within a frame: a commit may be lost"))
    } else if rest >= frameSize, Array(bytes[(offset + 8)..<(offset + 16)]) == salts {
      problems.append(SalvageProblem(path, offset: offset, "the end of the log is damaged: a commit may be lost"))
    } else if !pending.isEmpty {
      problems.append(SalvageProblem(path, offset: offset, "a commit that was never finished was left out", isLoss: false))
    }
  }

  /// Notes the pages of later frames with these salts, up to the last one that ends a commit.
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

  /// The running checksum of the log's format: two words over pairs of words.
  private struct Sum: Equatable {
    private var (first, second): (UInt32, UInt32) = (0, 0)

    init() {}
    init(_ bytes: [UInt8], at offset: Int) {
      (first, second) = (bytes.bigEndian(at: offset) ?? 0, bytes.bigEndian(at: offset + 4) ?? 0)
    }

    mutating func add(_ bytes: [UInt8], _ range: Range<Int>, _ isBigEndian: Bool) -> Sum {
      bytes.withUnsafeBytes { bytes in
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
