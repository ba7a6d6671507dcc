internal import Foundation

/// The open index file beside a main file, in which the counts of later commits are written.
///
/// An index file is a cache. If it is missing, damaged or belongs to another main file, an opening reads the main file and makes the index
/// anew, so every error of an index file is ignored.
struct IndexFile: Sendable {
  private let file: any OpenFile
  private let slots: IndexFileSlots
  /// The slot that is written next: 0 or 1.
  private var next = 0

  /// An index that was read from its file, with the counts in its slots.
  struct Stored: Sendable {
    let index: MainFileIndex
    fileprivate let file: IndexFile
    fileprivate let slots: [IndexFileSlots.Counts?]

    var counts: [IndexFileSlots.Counts] { slots.compactMap { $0 } }

    /// Returns the index file, in which the slot with some counts is not the next one to be written.
    ///
    /// A torn write must leave the counts that an opening has used.
    func file(keeping counts: IndexFileSlots.Counts?) -> IndexFile {
      var file = file
      file.next = counts != nil && slots[0]?.commit == counts?.commit && slots[0]?.journal == counts?.journal ? 1 : 0
      return file
    }
  }

  /// Reads the index file of a main file, or returns `nil` if no index file describes the main file.
  static func read(
    of source: any OpenFile, header: UnsafeRawBufferPointer, paths: JSONFilePaths, in fileSystem: any FileSystem
  ) -> Stored? {
    do throws(RepositoryError) {
      // A file that is no plain file, such as a pipe, could block the opening.
      guard try fileSystem.status(of: paths.index)?.kind == .file, let file = try fileSystem.open(paths.index, writable: true) else {
        return nil
      }
      let (head, limit) = (try file.read(at: 0, count: IndexFileFormat.headerSize), try source.size())
      // An index is shorter than the lines that it describes. The size is compared first, since a damaged one may not fit into memory.
      guard let size = head.withUnsafeBytes({ IndexFileFormat.indexSize(in: $0) }), size <= limit + IndexFileFormat.headerSize else {
        return nil
      }
      let bytes = try file.read(at: 0, count: size)
      guard let (index, slots) = bytes.withUnsafeBytes({ IndexFileFormat.index(in: $0) }) else { return nil }
      let identity = index.identity
      // The last line has a count and a hash, so an offset far before the end is not that of the last line.
      guard identity.header == CRC32C.checksum(header), identity.size == limit,
        (1...4_096).contains(identity.size - identity.sealOffset), index.isGapless(from: header.count)
      else { return nil }
      let seal = try source.read(at: identity.sealOffset, count: identity.size - identity.sealOffset)
      guard identity.seal == seal.withUnsafeBytes({ CRC32C.checksum($0) }) else { return nil }
      var counts: [IndexFileSlots.Counts?] = []
      for slot in 0..<2 {
        let bytes = try file.read(at: slots.offset + slot * slots.size, count: slots.size)
        counts.append(bytes.withUnsafeBytes { slots.counts(in: $0) })
      }
      return Stored(index: index, file: IndexFile(file: file, slots: slots), slots: counts)
    } catch {
      return nil
    }
  }

  /// Writes the index file of a main file durably under its temporary name, and returns `nil` if that fails.
  static func write(
    _ index: MainFileIndex, like main: MainFile, paths: JSONFilePaths, in fileSystem: any FileSystem
  ) -> IndexFile? {
    let bytes = IndexFileFormat.bytes(of: index)
    do throws(RepositoryError) {
      let file = try replacement(paths, fileSystem).write(like: main) { file throws(RepositoryError) in
        try file.setMode(main.mode)
        try bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: 0) }
        // Without the sync, the index file would often be lost with a power cut, and the next opening would read the whole main file.
        try file.sync()
        return file
      }
      return IndexFile(file: file, slots: IndexFileFormat.slots(behind: bytes, of: index))
    } catch {
      return nil
    }
  }

  /// Gives a written index file its name, or discards it and returns false.
  func takeName(paths: JSONFilePaths, in fileSystem: any FileSystem) -> Bool {
    let replacement = Self.replacement(paths, fileSystem)
    do throws(RepositoryError) { try replacement.rename() } catch {
      replacement.discard(file)
      return false
    }
    return true
  }

  /// Removes a written index file that has not got its name.
  func discard(paths: JSONFilePaths, in fileSystem: any FileSystem) { Self.replacement(paths, fileSystem).discard(file) }

  /// Writes the counts of a commit over the older one of the two slots, and returns false if that fails.
  mutating func save(_ counts: IndexFileSlots.Counts) -> Bool {
    guard let bytes = slots.bytes(counts) else { return false }
    let offset = slots.offset + next * slots.size
    do throws(RepositoryError) {
      try bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
    } catch {
      return false
    }
    next = 1 - next
    return true
  }

  private static func replacement(_ paths: JSONFilePaths, _ fileSystem: any FileSystem) -> FileReplacement {
    FileReplacement(path: paths.index, fileSystem: fileSystem)
  }
}

/// The index of a main file that was written just now, and the index file if it could be written.
struct NewIndex: Sendable {
  let index: MainFileIndex
  let file: IndexFile?
}

/// The byte layout of an index file, `spots.json-index`: the index of a main file, and two slots with the counts of later commits.
///
/// `Docs/Larder.docc/Formats/IndexFileFormat.md` describes the layout. All numbers are little-endian.
enum IndexFileFormat {
  static let version: UInt32 = 1
  /// "LARDERIX", the first eight bytes of an index file.
  static let magic: UInt64 = 0x5849_5245_4452_414C
  /// Length of the magic number, the version, the size of a slot and the length of the body.
  static let headerSize = 24
  /// Offsets of the slots are multiples of this number, so that the write of one slot leaves the other one alone.
  private static let alignment = 4_096

  /// Returns the bytes of an index file up to its slots.
  static func bytes(of index: MainFileIndex) -> [UInt8] {
    var body: [UInt8] = []
    let identity = index.identity
    body.append(number: UInt64(identity.size))
    body.append(number: identity.header)
    body.append(number: UInt64(identity.sealOffset))
    body.append(number: identity.seal)
    body.append(number: UInt32(index.sections.count))
    for section in index.sections {
      body.append(text: RecordKey(section.collection))
      body.append(number: UInt64(section.recordCount))
      body.append(number: UInt64(section.byteCount))
      body.append(number: UInt32(clamping: min(section.versions.oldest, Int(Int32.max))))
      body.append(number: UInt32(clamping: section.versions.newest))
      body.append(number: UInt64(section.end))
      body.append(number: UInt32(section.keys.count))
      for block in section.keys.indices {
        body.append(number: UInt64(section.offsets[block]))
        body.append(number: section.checksums[block])
        body.append(text: section.keys[block])
      }
    }
    body.append(number: UInt32(index.tombstones.count))
    for tombstone in index.tombstones {
      body.append(text: RecordKey(tombstone.collection))
      body.append(text: tombstone.key)
      body.append(number: tombstone.revision.number)
      body.append(number: UInt32(truncatingIfNeeded: tombstone.schemaVersion))
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(headerSize + body.count + 4)
    bytes.append(number: magic)
    bytes.append(number: version)
    bytes.append(number: UInt32(slotSize(for: index)))
    bytes.append(number: UInt64(body.count))
    bytes += body
    bytes.append(number: bytes.withUnsafeBytes { CRC32C.checksum($0) })
    return bytes
  }

  /// Returns the length of the index that begins with a header, or `nil` if it is not one of an index file.
  static func indexSize(in header: UnsafeRawBufferPointer) -> Int? {
    guard header.count >= headerSize, header.number(at: 0) as UInt64 == magic,
      let bodySize = Int(exactly: header.number(at: 16) as UInt64), bodySize <= Int.max / 2
    else { return nil }
    return headerSize + bodySize + 4
  }

  /// Returns the index in the bytes of an index file, or `nil` if they are damaged, incomplete or of another version.
  static func index(in bytes: UnsafeRawBufferPointer) -> (index: MainFileIndex, slots: IndexFileSlots)? {
    guard bytes.count >= headerSize + 4, bytes.number(at: 0) as UInt64 == magic, bytes.number(at: 8) as UInt32 == version,
      let bodySize = Int(exactly: bytes.number(at: 16) as UInt64), bodySize <= bytes.count - headerSize - 4
    else { return nil }
    let (slotSize, end) = (bytes.count(at: 12), headerSize + bodySize)
    let checksum: UInt32 = bytes.number(at: end)
    guard checksum == CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[..<end])) else { return nil }
    var cursor = IndexFileCursor(UnsafeRawBufferPointer(rebasing: bytes[headerSize..<end]))
    guard let index = cursor.index(), cursor.isAtEnd, slotSize == self.slotSize(for: index) else { return nil }
    return (index, IndexFileSlots(offset: slotOffset(behind: end + 4), size: slotSize, seed: checksum))
  }

  /// Returns the place of the slots in a file that begins with the bytes of ``bytes(of:)``.
  static func slots(behind bytes: [UInt8], of index: MainFileIndex) -> IndexFileSlots {
    let seed: UInt32 = bytes.withUnsafeBytes { $0.number(at: bytes.count - 4) }
    return IndexFileSlots(offset: slotOffset(behind: bytes.count), size: slotSize(for: index), seed: seed)
  }

  private static func slotOffset(behind end: Int) -> Int { (end + alignment - 1) / alignment * alignment }

  /// A slot has room for twice the collections of the index, because later commits may add collections.
  private static func slotSize(for index: MainFileIndex) -> Int {
    let needed = index.sections.reduce(64) { $0 + 2 * (32 + $1.collection.utf8.count) }
    return slotOffset(behind: needed)
  }
}

/// The place of the two slots of an index file, which are written by turns, so that a torn write leaves the slot before it.
struct IndexFileSlots: Sendable {
  let offset: Int
  let size: Int
  /// Seed of the slots' checksums: the checksum of the index, so that no slot of another index file counts.
  let seed: UInt32

  /// The records of the collections as of one commit of a journal.
  struct Counts: Sendable {
    let commit: UInt64
    /// Hash of the journal's frames up to the commit, since after a power cut another commit may have the number.
    let journal: UInt64
    /// The number, the length and the schema versions of the records of each collection.
    let collections: [String: CollectionCount]
  }

  /// Returns the bytes of a slot, or `nil` if the counts have no room in it.
  func bytes(_ counts: Counts) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.append(number: counts.commit)
    bytes.append(number: counts.journal)
    bytes.append(number: UInt32(counts.collections.count))
    for (name, count) in counts.collections {
      bytes.append(text: RecordKey(name))
      bytes.append(number: UInt64(clamping: count.records))
      bytes.append(number: UInt64(clamping: count.bytes))
      bytes.append(number: UInt32(clamping: min(count.versions.oldest, Int(Int32.max))))
      bytes.append(number: UInt32(clamping: count.versions.newest))
    }
    guard bytes.count + 8 <= size else { return nil }
    var slot: [UInt8] = []
    slot.append(number: UInt32(bytes.count))
    slot += bytes
    slot.append(number: slot.withUnsafeBytes { CRC32C.checksum($0, seed: seed) })
    return slot
  }

  /// Returns the counts of a slot, or `nil` if the slot is damaged or was never written.
  func counts(in slot: UnsafeRawBufferPointer) -> Counts? {
    guard slot.count >= 8 else { return nil }
    let size = slot.count(at: 0)
    guard size <= slot.count - 8, size > 0,
      CRC32C.checksum(UnsafeRawBufferPointer(rebasing: slot[..<(4 + size)]), seed: seed) == slot.number(at: 4 + size)
    else { return nil }
    var cursor = IndexFileCursor(UnsafeRawBufferPointer(rebasing: slot[4..<(4 + size)]))
    guard let commit: UInt64 = cursor.number(), let journal: UInt64 = cursor.number(), let count = cursor.count() else { return nil }
    var (collections, total): ([String: CollectionCount], Int) = ([:], 0)
    for _ in 0..<count {
      guard let name = cursor.text()?.text, let records = cursor.size(), let bytes = cursor.size(), let oldest = cursor.count(),
        let newest = cursor.count(), CollectionName.isValid(name), cursor.add([records, bytes], to: &total, limit: .max / 4)
      else { return nil }
      collections[name] = CollectionCount(records: records, bytes: bytes, versions: (oldest, newest))
    }
    return cursor.isAtEnd ? Counts(commit: commit, journal: journal, collections: collections) : nil
  }
}

/// The number, the length and the schema versions of the records of a collection.
struct CollectionCount: Sendable {
  var records = 0
  /// Length of all values together or more, in bytes.
  var bytes = 0
  /// Least and greatest schema version, where the least one is greater before the first record.
  var versions: (oldest: Int, newest: Int) = (.max, 0)

  /// Adds a value of a record to the bytes and the versions, which are bounds and need not be exact.
  mutating func note(_ record: StoredRecord) {
    guard let value = record.value else { return }
    bytes = Int(clamping: UInt64(bytes) + UInt64(value.count))
    versions = (min(versions.oldest, record.schemaVersion), max(versions.newest, record.schemaVersion))
  }
}

/// A reading position in the bytes of an index file, each function of which returns `nil` where the bytes end too early.
///
/// The checksum of the bytes has matched, so only a program that is not Larder can have written values that a cursor refuses.
private struct IndexFileCursor {
  private let bytes: UnsafeRawBufferPointer
  private var offset = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { offset == bytes.count }

  mutating func number<Number: FixedWidthInteger & BitwiseCopyable>() -> Number? {
    guard bytes.count - offset >= MemoryLayout<Number>.size else { return nil }
    defer { offset += MemoryLayout<Number>.size }
    return bytes.number(at: offset)
  }

  /// Returns a number of eight bytes that is an offset or a length.
  mutating func size() -> Int? {
    guard let number: UInt64 = number(), number <= UInt64(Int.max / 2) else { return nil }
    return Int(number)
  }

  /// Returns a number of four bytes that is a count.
  mutating func count() -> Int? { (number() as UInt32?).flatMap { Int(exactly: $0) } }

  mutating func text() -> RecordKey? {
    guard let count = count(), count <= bytes.count - offset else { return nil }
    defer { offset += count }
    return RecordKey(String(decoding: bytes[offset..<(offset + count)], as: UTF8.self))
  }

  /// Adds numbers to a sum, and returns false if it exceeds a limit, so that no sum of the numbers overflows.
  func add(_ numbers: [Int], to total: inout Int, limit: Int) -> Bool {
    for number in numbers {
      guard number <= limit - total else { return false }
      total += number
    }
    return true
  }

  mutating func index() -> MainFileIndex? {
    guard let size = size(), let header: UInt32 = number(), let sealOffset = self.size(), let seal: UInt32 = number(), let count = count()
    else { return nil }
    var (sections, total): ([MainFileIndex.Section], Int) = ([], 0)
    for _ in 0..<count {
      // The lines of a main file are longer than their values, and each record has a line.
      guard let section = section(before: sealOffset), add([section.recordCount, section.byteCount], to: &total, limit: size),
        sections.last.map({ RecordKey($0.collection) < RecordKey(section.collection) }) ?? true
      else { return nil }
      sections.append(section)
    }
    guard let tombstoneCount = self.count() else { return nil }
    var tombstones: [StoredRecord] = []
    for _ in 0..<tombstoneCount {
      guard let collection = text()?.text, let key = text(), let revision: UInt64 = number(), let version = self.count() else { return nil }
      tombstones.append(
        StoredRecord(collection: collection, key: key, revision: Revision(revision), schemaVersion: version, value: nil))
    }
    let identity = MainFileIndex.Identity(size: size, header: header, sealOffset: sealOffset, seal: seal)
    return MainFileIndex(identity: identity, sections: sections, tombstones: tombstones)
  }

  private mutating func section(before limit: Int) -> MainFileIndex.Section? {
    guard let name = text()?.text, let recordCount = size(), let byteCount = size(), let oldest = count(), let newest = count(),
      let end = size(), end <= limit, let blockCount = count(), blockCount > 0, CollectionName.isValid(name)
    else { return nil }
    var section = MainFileIndex.Section(name)
    (section.recordCount, section.byteCount, section.versions, section.end) = (recordCount, byteCount, (oldest, newest), end)
    for _ in 0..<blockCount {
      guard let offset = size(), offset < end, offset > section.offsets.last ?? -1, let checksum: UInt32 = number(), let key = text() else {
        return nil
      }
      section.offsets.append(offset)
      section.checksums.append(checksum)
      section.keys.append(key)
    }
    return section
  }
}

extension Array<UInt8> {
  /// Appends the length of a text in four bytes, and then its UTF-8 bytes.
  fileprivate mutating func append(text: RecordKey) {
    append(number: UInt32(truncatingIfNeeded: text.byteCount))
    text.withBytes { append(contentsOf: $0) }
  }
}
