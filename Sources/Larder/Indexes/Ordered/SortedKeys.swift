internal import Foundation
internal import HeapModule

/// The sorted keys of an index as of one commit, in memory and in a scratch file.
struct SortedKeys: Sendable {
  /// The keys that are in no run, each behind its length.
  private let inMemory: [UInt8]
  private let runs: [ScratchRun]
  private let scratch: ScratchFile?

  init(inMemory: [UInt8], runs: [ScratchRun], scratch: ScratchFile?) {
    (self.inMemory, self.runs, self.scratch) = (inMemory, runs, scratch)
  }

  /// Returns the keys from the first one on.
  ///
  /// - Parameter readCount: Number of bytes that all runs have in memory together, but at least 8 KiB each.
  /// - Throws: The errors of reading the scratch file.
  func stream(readCount: Int = 4 << 20) throws(RepositoryError) -> KeyStream {
    // All runs together are read with a few megabytes of memory, also if there are hundreds of them.
    let size = min(max(readCount / max(runs.count, 1), 8 << 10), 256 << 10)
    var sources = [KeyStream.Source(buffer: inMemory)]
    if let scratch { sources += runs.map { KeyStream.Source($0, of: scratch, size: size) } }
    return try KeyStream(sources)
  }
}

/// Keys in ascending order, merged from several sorted sources.
struct KeyStream: Sendable {
  private var sources: [Source]
  private var heads: Heap<Head>

  private struct Head: Comparable, Sendable {
    let key: Data
    let source: Int

    static func < (left: Self, right: Self) -> Bool { left.key.precedes(right.key) }
    static func == (left: Self, right: Self) -> Bool { left.key == right.key }
  }

  fileprivate init(_ sources: [Source]) throws(RepositoryError) {
    self.sources = sources
    var heads: [Head] = []
    for source in sources.indices {
      if let key = try self.sources[source].next() { heads.append(Head(key: key, source: source)) }
    }
    self.heads = Heap(heads)
  }

  /// The key at which the stream is, or `nil` at the end.
  var next: Data? { heads.min?.key }

  /// Moves on to the next key.
  ///
  /// - Throws: The errors of reading the scratch file.
  mutating func advance() throws(RepositoryError) {
    guard let head = heads.min else { return }
    if let key = try sources[head.source].next() {
      guard head.key.precedes(key) else { throw .damagedScratchFile }
      _ = heads.replaceMin(with: Head(key: key, source: head.source))
    } else {
      heads.removeMin()
    }
  }

  /// Keys in memory, or a run that is read in parts.
  fileprivate struct Source: Sendable {
    private var buffer: [UInt8]
    private var position = 0
    /// The part of the run behind the buffer.
    private var rest: Range<Int>
    /// Checksum of the bytes that were read.
    private var checksum: UInt32 = 0
    /// Checksum of the whole run.
    private let expected: UInt32
    private let scratch: ScratchFile?
    /// Number of bytes to read at once.
    private let size: Int

    init(buffer: [UInt8]) { (self.buffer, rest, expected, scratch, size) = (buffer, 0..<0, 0, nil, 0) }
    init(_ run: ScratchRun, of scratch: ScratchFile, size: Int) {
      (buffer, rest, expected, self.scratch, self.size) = ([], run.place, run.checksum, scratch, size)
    }

    mutating func next() throws(RepositoryError) -> Data? {
      if buffer.count - position < UnsortedKeys.lengthSize + UnsortedKeys.longestKey, let scratch, !rest.isEmpty {
        let read = try scratch.read(rest.prefix(size))
        checksum = read.withUnsafeBytes { CRC32C.checksum($0, seed: checksum) }
        buffer = Array(buffer[position...]) + read
        (position, rest) = (0, rest.dropFirst(size))
        // A stream does not end before the last byte was read, so no index is completed with a damaged key.
        guard !rest.isEmpty || checksum == expected else { throw .damagedScratchFile }
      }
      if position == buffer.count { return nil }
      let start = position + UnsortedKeys.lengthSize
      guard start <= buffer.count else { throw .damagedScratchFile }
      let end = start + Int(buffer[position]) + Int(buffer[position + 1]) << 8
      guard end <= buffer.count else { throw .damagedScratchFile }
      position = end
      return Data(buffer[start..<end])
    }
  }
}
