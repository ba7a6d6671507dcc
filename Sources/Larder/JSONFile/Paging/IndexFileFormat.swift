internal import Foundation

/// The byte layout of an index file, `spots.json-index`: the index of a main file, slots with the counts of later commits, and the keys of
/// indexes.
///
/// `Docs/Larder.docc/Formats/IndexFileFormat.md` describes the layout. All numbers are little-endian.
enum IndexFileFormat {
  static let version: UInt32 = 2
  /// "LARDERIX", the first eight bytes of an index file.
  static let magic: UInt64 = 0x5849_5245_4452_414C
  /// Length of the magic number, the version, the size of a slot and the length of the body.
  static let headerSize = 24
  /// Offsets of the slots are multiples of this number, so that the write of one slot leaves the others unchanged.
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
    let needed = index.sections.reduce(128) { $0 + 2 * (32 + $1.collection.utf8.count) }
    return slotOffset(behind: needed)
  }
}

/// The place of the slots of an index file.
///
/// A slot says what the file holds as of one commit. The store writes the first two in turn, so that a torn write leaves the other slot
/// intact. The third is written with the file.
struct IndexFileSlots: Sendable {
  let offset: Int
  let size: Int
  /// Seed of the slots' checksums: the checksum of the index, so that no slot of another index file counts.
  let seed: UInt32

  /// Number of the slots.
  static let count = 3

  /// Offset behind the slots.
  var end: Int { offset + Self.count * size }

  /// The contents of a slot, as of one commit of a journal.
  struct Slot: Sendable {
    /// Number of the write, so that of two slots of one commit the later one counts.
    let sequence: UInt64
    let commit: UInt64
    /// Hash of the journal's frames up to the commit, since after a power cut another commit may have the number.
    let journal: UInt64
    /// The part with the list of the indexes.
    let catalog: IndexFilePart
    /// The newest part with edits of the indexes, which names the part before it.
    let edits: IndexFilePart
    /// The number, the length and the schema versions of the records of each collection.
    let collections: [String: CollectionCount]
  }

  /// Returns the bytes of a slot, or `nil` if the contents have no room in it.
  func bytes(_ slot: Slot) -> [UInt8]? {
    var fields: [UInt8] = []
    for number in [slot.sequence, slot.commit, slot.journal] { fields.append(number: number) }
    for part in [slot.catalog, slot.edits] { fields.append(part: part) }
    fields.append(number: UInt32(slot.collections.count))
    for (name, count) in slot.collections {
      fields.append(text: RecordKey(name))
      fields.append(number: UInt64(clamping: count.records))
      fields.append(number: UInt64(clamping: count.bytes))
      fields.append(number: UInt32(clamping: min(count.versions.oldest, Int(Int32.max))))
      fields.append(number: UInt32(clamping: count.versions.newest))
    }
    guard fields.count + 8 <= size else { return nil }
    var bytes: [UInt8] = []
    bytes.append(number: UInt32(fields.count))
    bytes += fields
    bytes.append(number: bytes.withUnsafeBytes { CRC32C.checksum($0, seed: seed) })
    return bytes
  }

  /// Returns the contents of a slot, or `nil` if the slot is damaged or was never written.
  func slot(in bytes: UnsafeRawBufferPointer) -> Slot? {
    guard bytes.count >= 8 else { return nil }
    let size = bytes.count(at: 0)
    guard size <= bytes.count - 8, size > 0,
      CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[..<(4 + size)]), seed: seed) == bytes.number(at: 4 + size)
    else { return nil }
    var cursor = IndexFileCursor(UnsafeRawBufferPointer(rebasing: bytes[4..<(4 + size)]))
    guard let sequence: UInt64 = cursor.number(), let commit: UInt64 = cursor.number(), let journal: UInt64 = cursor.number(),
      let catalog = cursor.part(), let edits = cursor.part(), let count = cursor.count()
    else { return nil }
    var (collections, total): ([String: CollectionCount], Int) = ([:], 0)
    for _ in 0..<count {
      guard let name = cursor.text()?.text, let records = cursor.size(), let bytes = cursor.size(), let oldest = cursor.count(),
        let newest = cursor.count(), CollectionName.isValid(name), cursor.add([records, bytes], to: &total, limit: .max / 4)
      else { return nil }
      collections[name] = CollectionCount(records: records, bytes: bytes, versions: (oldest, newest))
    }
    guard cursor.isAtEnd, sequence <= UInt64.max / 2 else { return nil }
    return Slot(sequence: sequence, commit: commit, journal: journal, catalog: catalog, edits: edits, collections: collections)
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
struct IndexFileCursor {
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

  /// Returns the next bytes, which are valid as long as those of the cursor.
  mutating func bytes(_ count: Int) -> UnsafeRawBufferPointer? {
    guard count <= bytes.count - offset else { return nil }
    defer { offset += count }
    return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
  }

  mutating func text() -> RecordKey? {
    guard let count = count(), let bytes = bytes(count) else { return nil }
    return RecordKey(String(decoding: bytes, as: UTF8.self))
  }

  mutating func data() -> Data? {
    guard let count = count(), let bytes = bytes(count) else { return nil }
    return Data(bytes)
  }

  mutating func part() -> IndexFilePart? {
    guard let offset = size(), let size = count(), let checksum: UInt32 = number() else { return nil }
    return IndexFilePart(offset: offset, size: size, checksum: checksum)
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
  mutating func append(text: RecordKey) {
    append(number: UInt32(truncatingIfNeeded: text.byteCount))
    text.withBytes { append(contentsOf: $0) }
  }

  /// Appends the number of bytes in four bytes, and then the bytes.
  mutating func append(data: Data) {
    append(number: UInt32(truncatingIfNeeded: data.count))
    append(contentsOf: data)
  }

  /// Appends the offset of a part in eight bytes, its size in four and its checksum in four.
  mutating func append(part: IndexFilePart) {
    append(number: UInt64(part.offset))
    append(number: UInt32(truncatingIfNeeded: part.size))
    append(number: part.checksum)
  }
}
