internal import Foundation
internal import Synchronization

/// A part of an index file, with the checksum of its bytes.
struct IndexFilePart: Hashable, Sendable {
  let offset: Int
  let size: Int
  let checksum: UInt32

  /// The part of 16 zero bytes in the file, which names no bytes.
  static let none = IndexFilePart(offset: 0, size: 0, checksum: 0)
}

/// Reads of the parts of an index file, whose bytes never change.
extension SnapshotFile {
  /// Reads a part and compares its checksum.
  ///
  /// - Throws: `.corrupted` if the bytes do not match the checksum, `.superseded` after ``supersede(isSpaceNeeded:)``.
  func read(_ part: IndexFilePart) throws(RepositoryError) -> Data {
    var window = Window()
    return try read(part, with: 0, in: &window)
  }

  /// Bytes of the file that were read last.
  struct Window {
    fileprivate var offset = 0
    fileprivate var bytes = Data()
  }

  /// Reads a part and compares its checksum, for a caller that reads neighbouring parts from the last to the first.
  ///
  /// - Parameter count: Number of bytes up to the end of the part that are read together.
  func read(_ part: IndexFilePart, with count: Int, in window: inout Window) throws(RepositoryError) -> Data {
    let end = part.offset + part.size
    if part.offset < window.offset || end > window.offset + window.bytes.count {
      let start = max(0, end - max(part.size, count))
      window.bytes = try read(at: start, count: end - start)
      window.offset = start
    }
    let start = window.bytes.startIndex + part.offset - window.offset
    guard end <= window.offset + window.bytes.count else { throw damage(in: part) }
    let bytes = window.bytes[start..<(start + part.size)]
    guard bytes.withUnsafeBytes({ CRC32C.checksum($0) }) == part.checksum else { throw damage(in: part) }
    return bytes
  }

  /// Returns the error for a part with other bytes than those that were written.
  func damage(in part: IndexFilePart) -> RepositoryError {
    RepositoryError(
      .corrupted, "expected ascending keys of an index, found other bytes; the store builds the index again", file: path,
      offset: UInt64(part.offset))
  }
}

/// The sorted keys of one index as they were written to an index file, in blocks that are read when they are needed.
final class KeyRun: Sendable {
  /// Consecutive keys, which are read together.
  struct Block: Sendable {
    let part: IndexFilePart
    /// Number of keys in the block.
    let count: Int
    let firstKey: Data
  }

  /// The blocks in order, with the number of keys before each.
  struct Directory: Sendable {
    let blocks: [Block]
    let starts: [Int]

    init(_ blocks: [Block]) {
      self.blocks = blocks
      var start = 0
      starts = blocks.map { block in
        defer { start += block.count }
        return start
      }
    }

    /// Returns the number of the last block that begins at or before a key, or 0.
    func block(of key: Data) -> Int { max(blocks.indices.partitionPoint { key.precedes(blocks[$0].firstKey) } - 1, 0) }
  }

  /// Number of keys in the run.
  let count: Int
  /// Place of the directory in the index file.
  let part: IndexFilePart
  let reader: SnapshotFile
  private let directory: Mutex<Directory?>

  init(_ part: IndexFilePart, count: Int, in reader: SnapshotFile, blocks: [Block]? = nil) {
    (self.part, self.count, self.reader) = (part, count, reader)
    directory = Mutex(blocks.map(Directory.init))
  }

  /// Returns the directory, which is read from the file once.
  func blocks() throws(RepositoryError) -> Directory {
    if let known = directory.withLock({ $0 }) { return known }
    guard let found = try reader.read(part).withUnsafeBytes({ KeyRunFormat.blocks(in: $0) }), found.reduce(0, { $0 + $1.count }) == count
    else {
      throw reader.damage(in: part)
    }
    let read = Directory(found)
    directory.withLock { $0 = read }
    return read
  }

  /// Returns the keys of a block.
  func keys(of block: Block) throws(RepositoryError) -> [Data] {
    var keys: [Data] = []
    keys.reserveCapacity(block.count)
    try forEachKey(of: block) { keys.append(Data($0)) }
    guard keys.first == block.firstKey, zip(keys, keys.dropFirst()).allSatisfy({ $0.precedes($1) }) else {
      throw reader.damage(in: block.part)
    }
    return keys
  }

  /// Returns the keys of a block from a key on and below another one.
  func keys(of block: Block, from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data] {
    var (keys, isFirst, isAscending): ([Data], Bool, Bool) = ([], true, true)
    try forEachKey(of: block) { key in
      if isFirst { isAscending = block.firstKey.withUnsafeBytes { key.elementsEqualBytes($0) } }
      isFirst = false
      // Most keys of a search are out of the range, and need no memory of their own.
      guard !lower.withUnsafeBytes(key.precedesInBytes), upper?.withUnsafeBytes(key.precedesInBytes) ?? true else { return }
      let found = Data(key)
      if let last = keys.last, !last.precedes(found) { isAscending = false }
      keys.append(found)
    }
    guard isAscending else { throw reader.damage(in: block.part) }
    return keys
  }

  /// Visits the keys of a block in order, whose bytes are valid during the visit.
  func forEachKey(of block: Block, _ body: (UnsafeRawBufferPointer) throws(RepositoryError) -> Void) throws(RepositoryError) {
    let bytes = try reader.read(block.part)
    let count = try bytes.lending { bytes throws(RepositoryError) in try KeyRunFormat.forEachKey(in: bytes, body) }
    guard count == block.count else { throw reader.damage(in: block.part) }
  }

  /// Copies the blocks to another index file.
  ///
  /// Cost: reads and writes all keys, some 40 MB for a million records.
  func copy(to file: inout IndexFile) throws(RepositoryError) -> KeyRun {
    var (copies, piece, pending): ([Block], [UInt8], [(block: Block, start: Int)]) = ([], [], [])
    let blocks = try blocks().blocks
    for (number, block) in blocks.enumerated() {
      pending.append((block, piece.count))
      piece += try reader.read(block.part)
      guard piece.count >= KeyRunFormat.pieceSize || number == blocks.count - 1 else { continue }
      let offset = try file.append(piece).offset
      for (block, start) in pending {
        let part = IndexFilePart(offset: offset + start, size: block.part.size, checksum: block.part.checksum)
        copies.append(Block(part: part, count: block.count, firstKey: block.firstKey))
      }
      (piece, pending) = ([], [])
    }
    return KeyRun(try file.append(KeyRunFormat.bytes(of: copies)), count: count, in: file.reader, blocks: copies)
  }

  /// Returns the number of keys before a key.
  func rank(of key: Data) throws(RepositoryError) -> Int {
    let directory = try blocks()
    guard !directory.blocks.isEmpty else { return 0 }
    let number = directory.block(of: key)
    let keys = try keys(of: directory.blocks[number])
    return directory.starts[number] + keys.indices.partitionPoint { !keys[$0].precedes(key) }
  }
}

/// A writer of a run, to which the keys are passed in ascending order.
struct KeyRunWriter: Sendable {
  private var blocks: [KeyRun.Block] = []
  private var count = 0
  /// The last key that was added.
  private var last: [UInt8] = []
  /// Bytes of the blocks that are not written yet, of which the last one may be unfinished.
  private var piece: [UInt8] = []
  private var pieceBlocks: [PieceBlock] = []
  /// Number of keys of the unfinished block, or 0 if there is none.
  private var openCount = 0

  private struct PieceBlock: Sendable {
    let start: Int
    let firstKey: Data
    var end = 0
    var count = 0
  }

  /// Size in bytes from which on a block is not continued.
  private static let blockSize = 64 << 10

  /// Adds a key behind the others.
  ///
  /// - Throws: `.unsupported` for a key that does not ascend or is too long, and the errors of ``IndexFile/append(_:)``. Do not use the
  ///   writer after an error.
  mutating func add(_ key: UnsafeRawBufferPointer, to file: inout IndexFile) throws(RepositoryError) {
    let common = last.withUnsafeBytes { KeyRunFormat.commonCount($0, key) }
    let isAscending = count == 0 || common < key.count && (common == last.count || last[common] < key[common])
    guard isAscending, key.count <= KeyRunFormat.longestKey else {
      throw RepositoryError(.unsupported, "expected ascending keys of at most \(KeyRunFormat.longestKey) bytes, found others")
    }
    if openCount == 0 {
      pieceBlocks.append(PieceBlock(start: piece.count, firstKey: Data(key)))
      piece.append(number: UInt32(0))
    }
    KeyRunFormat.append(key, sharing: openCount == 0 ? 0 : common, to: &piece)
    last.removeLast(last.count - common)
    last.append(contentsOf: key[common...])
    (count, openCount) = (count + 1, openCount + 1)
    if openCount == KeyRunFormat.blockCount || piece.count - pieceBlocks[pieceBlocks.count - 1].start >= Self.blockSize { endBlock() }
    if openCount == 0, piece.count >= KeyRunFormat.pieceSize { try write(to: &file) }
  }

  /// Writes the rest of the run and its directory.
  mutating func finish(in file: inout IndexFile) throws(RepositoryError) -> KeyRun {
    endBlock()
    try write(to: &file)
    return KeyRun(try file.append(KeyRunFormat.bytes(of: blocks)), count: count, in: file.reader, blocks: blocks)
  }

  private mutating func endBlock() {
    guard openCount > 0, let open = pieceBlocks.indices.last else { return }
    let start = pieceBlocks[open].start
    withUnsafeBytes(of: UInt32(openCount).littleEndian) { piece.replaceSubrange(start..<(start + 4), with: $0) }
    (pieceBlocks[open].end, pieceBlocks[open].count) = (piece.count, openCount)
    openCount = 0
  }

  private mutating func write(to file: inout IndexFile) throws(RepositoryError) {
    if piece.isEmpty { return }
    let offset = try file.append(piece).offset
    for block in pieceBlocks {
      let checksum = piece.withUnsafeBytes { CRC32C.checksum(UnsafeRawBufferPointer(rebasing: $0[block.start..<block.end])) }
      let part = IndexFilePart(offset: offset + block.start, size: block.end - block.start, checksum: checksum)
      blocks.append(KeyRun.Block(part: part, count: block.count, firstKey: block.firstKey))
    }
    (piece, pieceBlocks) = ([], [])
  }
}

/// The byte layout of a run: its blocks and their directory.
///
/// `Docs/Larder.docc/Formats/IndexFileFormat.md` describes the layout.
enum KeyRunFormat {
  /// Largest length of a key in bytes.
  static let longestKey = 32 << 10
  /// Largest number of keys of a block, which bounds the memory for a block of any bytes.
  static let blockCount = 256
  /// Size in bytes from which on blocks are written together.
  static let pieceSize = 256 << 10

  /// Appends a key: the number of bytes that it shares with the key before, the number of further bytes, and these bytes.
  static func append(_ key: UnsafeRawBufferPointer, sharing shared: Int, to bytes: inout [UInt8]) {
    bytes.append(number: UInt16(truncatingIfNeeded: shared))
    bytes.append(number: UInt16(truncatingIfNeeded: key.count - shared))
    bytes.append(contentsOf: key[shared...])
  }

  /// Returns the number of bytes with which both keys begin.
  static func commonCount(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
    let limit = min(left.count, right.count)
    var count = 0
    while count < limit, left[count] == right[count] { count += 1 }
    return count
  }

  /// Visits the keys of a block in order, whose bytes are valid during the visit, and returns their number, or `nil` for other bytes.
  static func forEachKey(
    in bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws(RepositoryError) -> Void
  ) throws(RepositoryError) -> Int? {
    var cursor = IndexFileCursor(bytes)
    guard let count = cursor.count(), count <= blockCount else { return nil }
    var key: [UInt8] = []
    for _ in 0..<count {
      guard let shared: UInt16 = cursor.number(), let size: UInt16 = cursor.number(), let rest = cursor.bytes(Int(size)),
        Int(shared) <= key.count, Int(shared) + Int(size) <= longestKey
      else { return nil }
      key.removeLast(key.count - Int(shared))
      key.append(contentsOf: rest)
      try key.lending { key throws(RepositoryError) in try body(key) }
    }
    return cursor.isAtEnd ? count : nil
  }

  /// Returns the bytes of a directory.
  static func bytes(of blocks: [KeyRun.Block]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(number: UInt32(truncatingIfNeeded: blocks.count))
    for block in blocks {
      bytes.append(part: block.part)
      bytes.append(number: UInt32(truncatingIfNeeded: block.count))
      bytes.append(data: block.firstKey)
    }
    return bytes
  }

  /// Returns the blocks of a directory, or `nil` for other bytes.
  static func blocks(in bytes: UnsafeRawBufferPointer) -> [KeyRun.Block]? {
    var cursor = IndexFileCursor(bytes)
    guard let count = cursor.count(), count <= bytes.count / 24 else { return nil }
    var blocks: [KeyRun.Block] = []
    blocks.reserveCapacity(count)
    for _ in 0..<count {
      guard let part = cursor.part(), let count = cursor.count(), (1...blockCount).contains(count), let key = cursor.data() else {
        return nil
      }
      if let last = blocks.last, !last.firstKey.precedes(key) { return nil }
      blocks.append(KeyRun.Block(part: part, count: count, firstKey: key))
    }
    return cursor.isAtEnd ? blocks : nil
  }
}
