// The folder Paging/ leaves the records of a JSON store in its files, and reads them when they are asked for.
// Invariant: every byte of a main file between its header and its seal is under the checksum of a block, so a missing line is an error.
// The folder Paging/ is called by the folder JSONFile/.

internal import Foundation

/// The index of a main file: where its blocks of lines begin, with a checksum of each block, and a summary of each collection.
///
/// A block holds consecutive lines of one collection, which together are about 24 KiB long.
struct MainFileIndex: Sendable {
  /// The lines of one collection.
  struct Section: Sendable {
    let collection: String
    /// Number of records, without tombstones.
    var recordCount = 0
    /// Length of all values together, in bytes.
    var byteCount = 0
    /// Least and greatest schema version of the records, where the least one is greater if there is no record.
    var versions: (oldest: Int, newest: Int) = (.max, 0)
    /// Key of the first line of each block.
    var keys: [RecordKey] = []
    /// Offset in the main file of the first line of each block.
    var offsets: [Int] = []
    /// Checksum of the bytes of each block.
    var checksums: [UInt32] = []
    /// Offset in the main file behind the last block.
    var end = 0

    init(_ collection: String) { self.collection = collection }

    /// The range in the main file of a block.
    func range(ofBlock block: Int) -> Range<Int> {
      // The offsets of a section ascend, which `MainFileIndexer` and `IndexFileFormat` make sure of.
      offsets[block]..<(block + 1 < offsets.count ? offsets[block + 1] : end)
    }

    /// Returns the block that has the line of a key if the main file has one.
    func block(of key: RecordKey) -> Int? {
      let next = keys.indices.partitionPoint { key < keys[$0] }
      return next == 0 ? nil : next - 1
    }
  }

  /// Values that differ between any two main files.
  struct Identity: Hashable, Sendable {
    /// Length of the main file in bytes.
    let size: Int
    /// Checksum of the header line.
    let header: UInt32
    /// Offset in the main file of the last line, the seal.
    let sealOffset: Int
    /// Checksum of the seal.
    let seal: UInt32
  }

  let identity: Identity
  /// The collections in the order of the main file.
  let sections: [Section]
  /// All tombstones of the main file, in its order.
  let tombstones: [StoredRecord]

  /// True if the blocks have every byte between the header line and the seal.
  func isGapless(from start: Int) -> Bool {
    var end = start
    for section in sections {
      guard section.offsets.first == end else { return false }
      end = section.end
    }
    return end == identity.sealOffset
  }

  /// The section of a collection, or `nil` if the main file has no line of it.
  func section(of collection: String) -> Section? {
    // The lines of a main file are in the order of the names' bytes.
    let name = RecordKey(collection)
    let position = sections.indices.partitionPoint { !(RecordKey(sections[$0].collection) < name) }
    return position < sections.count && sections[position].collection == collection ? sections[position] : nil
  }
}

/// A builder of the index of a main file, to which the file's lines are passed in order.
struct MainFileIndexer: Sendable {
  private var sections: [MainFileIndex.Section] = []
  private var tombstones: [StoredRecord] = []
  private var checksum = CRC32C()
  private var header: UInt32 = 0

  /// Length in bytes from which on a block is not continued.
  ///
  /// A longer block makes a look-up read more, and a shorter one makes the index longer: about 0.8 MB for a million records of 270 bytes.
  private static let blockSize = 24 << 10

  /// Begins with the header line of the main file, with its line feed.
  init(header: UnsafeRawBufferPointer) { self.header = CRC32C.checksum(header) }

  /// Adds a record or tombstone whose line begins at an offset of the main file.
  mutating func begin(_ record: StoredRecord, at offset: Int) {
    let isNewSection = sections.last?.collection != record.collection
    var beginsBlock = isNewSection
    if let start = sections.last?.offsets.last, isNewSection || offset - start >= Self.blockSize {
      endBlock(at: offset)
      beginsBlock = true
    }
    if isNewSection { sections.append(MainFileIndex.Section(record.collection)) }
    sections[sections.count - 1].add(record, at: offset, isFirst: beginsBlock)
    if record.value == nil { tombstones.append(record) }
  }

  /// Adds the next bytes of the lines, with the commas and line feeds between them.
  mutating func append(_ bytes: UnsafeRawBufferPointer) { checksum.update(bytes) }

  /// Returns the index of the main file, whose lines end at an offset, where the seal begins.
  func finish(at offset: Int, seal: UnsafeRawBufferPointer) -> MainFileIndex {
    var indexer = self
    indexer.endBlock(at: offset)
    let identity = MainFileIndex.Identity(
      size: offset + seal.count, header: header, sealOffset: offset, seal: CRC32C.checksum(seal))
    return MainFileIndex(identity: identity, sections: indexer.sections, tombstones: tombstones)
  }

  private mutating func endBlock(at offset: Int) {
    guard !sections.isEmpty else { return }
    sections[sections.count - 1].checksums.append(checksum.value)
    sections[sections.count - 1].end = offset
    checksum = CRC32C()
  }
}

extension MainFileIndex.Section {
  /// Adds a line to the summary and, if it is the first line of a block, begins the block.
  fileprivate mutating func add(_ record: StoredRecord, at offset: Int, isFirst: Bool) {
    if isFirst {
      keys.append(record.key)
      offsets.append(offset)
    }
    guard let value = record.value else { return }
    recordCount += 1
    byteCount += value.count
    versions = (min(versions.oldest, record.schemaVersion), max(versions.newest, record.schemaVersion))
  }
}

extension MainFileIndex {
  /// The counts of the main file's collections.
  var counts: [String: CollectionCount] {
    Dictionary(
      sections.map { ($0.collection, CollectionCount(records: $0.recordCount, bytes: $0.byteCount, versions: $0.versions)) }
    ) { $1 }
  }

  /// Reads a whole main file, compares every checksum, and returns the index.
  ///
  /// - Throws: as ``MainFileStream/read(_:)``.
  static func read(_ file: any OpenFile, path: String) throws(RepositoryError) -> MainFileIndex {
    let head = try MainFileReader(source: .file(file), file: path).header().line
    var indexer = head.withUnsafeBytes { MainFileIndexer(header: $0) }
    var (offset, count) = (head.count, 0)
    func add(_ bytes: Data) {
      bytes.withUnsafeBytes { indexer.append($0) }
      offset += bytes.count
    }
    _ = try MainFileStream(file: file, path: path).read { (line, bytes) throws(RepositoryError) in
      if count > 0 { add(Data(",\n".utf8)) }
      indexer.begin(line.record, at: offset)
      add(bytes[(bytes.startIndex + line.text.lowerBound)..<(bytes.startIndex + line.text.upperBound)])
      count += 1
    }
    if count > 0 { add(Data("\n".utf8)) }
    let seal = try file.read(at: offset, count: try file.size() - offset)
    return seal.withUnsafeBytes { indexer.finish(at: offset, seal: $0) }
  }
}
