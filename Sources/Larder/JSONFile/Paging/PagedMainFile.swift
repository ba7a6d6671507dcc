internal import Dispatch
internal import Foundation
internal import Synchronization

/// A main file whose records are read block by block, through a descriptor of its own.
///
/// A main file never changes. After a checkpoint has put another file in its place, the descriptor still reads the old file, whose space
/// the system frees when the descriptor is closed. The descriptor holds no lock, so the store can be suspended or closed beside it.
final class PagedMainFile: Sendable {
  let index: MainFileIndex
  private let reader: SnapshotFile
  /// Newest commit of the main file.
  private let commit: UInt64

  /// Opens a main file a second time.
  ///
  /// - Throws: `.dataMissing` if another file has the path by now.
  init(_ main: MainFile, _ index: MainFileIndex, at path: String, in fileSystem: any FileSystem) throws(RepositoryError) {
    let file = try fileSystem.open(path, writable: false)
    guard let file, try file.status().identity == main.identity else {
      throw RepositoryError(
        .dataMissing, "another file was put in the place of the main file while its store is open; put it back, or close the store",
        file: path)
    }
    (self.index, reader, commit) = (index, SnapshotFile(file, path: path), main.header.commit)
  }

  /// Closes the file as soon as no read of it is running.
  ///
  /// See ``SnapshotFile/supersede(isSpaceNeeded:)``.
  func supersede(isSpaceNeeded: Bool = false) { reader.supersede(isSpaceNeeded: isSpaceNeeded) }

  /// The bytes of one block, whose checksum has matched.
  struct Block {
    fileprivate let section: String
    fileprivate let number: Int
    /// The block and the byte behind it, which shows whether another line or the seal follows.
    fileprivate let bytes: Data
    /// Offset of the block in the main file.
    fileprivate let offset: Int
    fileprivate var end: Int { bytes.count - 1 }
  }

  /// Returns the record or tombstone of a key, or `nil` if the main file has no line of it.
  ///
  /// - Parameter last: The block that was read last, which is not read again.
  func line(
    of key: RecordKey, in section: MainFileIndex.Section, last: inout Block?
  ) throws(RepositoryError) -> StoredRecord? {
    guard let number = section.block(of: key) else {
      try reader.check()
      return nil
    }
    let block = try block(number, of: section, last: &last)
    return try block.bytes.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: reader.path)
      cursor.base = block.offset
      guard let start = try start(ofLineWith: key, of: section.collection, before: block.end, cursor) else { return nil }
      cursor.offset = start
      return try MainFileSegment(data: block.bytes, commit: commit).readLines(from: cursor, to: start + 1).lines.first?.record.detached
    }
  }

  /// Returns the record at an address, or `nil` for a tombstone and if the main file has no line of it.
  func record(at address: RecordAddress, last: inout Block?) throws(RepositoryError) -> StoredRecord? {
    guard let section = index.section(of: address.collection) else { return nil }
    let found = try line(of: address.key, in: section, last: &last)
    return found?.value == nil ? nil : found
  }

  /// Returns the records and tombstones of one block, in the order of their keys.
  func lines(
    ofBlock number: Int, of section: MainFileIndex.Section, last: inout Block?
  ) throws(RepositoryError) -> [StoredRecord] {
    let block = try block(number, of: section, last: &last)
    return try block.bytes.lending { bytes throws(RepositoryError) in
      var cursor = ByteCursor(bytes, file: reader.path)
      cursor.base = block.offset
      let (lines, end) = try MainFileSegment(data: block.bytes, commit: commit).readLines(from: cursor, to: block.end)
      guard end == block.end else { throw cursor.corrupted("expected lines that end with their block", at: end) }
      return lines.map(\.record)
    }
  }

  private func block(
    _ number: Int, of section: MainFileIndex.Section, last: inout Block?
  ) throws(RepositoryError) -> Block {
    if let last, last.number == number, last.section == section.collection { return last }
    let range = section.range(ofBlock: number)
    let bytes = try reader.read(at: range.lowerBound, count: range.count + 1)
    // A block that lacks a line would otherwise look like a block whose record was deleted.
    guard bytes.count == range.count + 1,
      bytes.withUnsafeBytes({ CRC32C.checksum(UnsafeRawBufferPointer(rebasing: $0.dropLast())) }) == section.checksums[number]
    else {
      throw RepositoryError(
        .corrupted, "expected the lines that the index file describes, found other bytes; run verify()", file: reader.path,
        offset: UInt64(range.lowerBound))
    }
    let block = Block(section: section.collection, number: number, bytes: bytes, offset: range.lowerBound)
    last = block
    return block
  }

  /// Returns the offset in a block of the line with a key, or `nil` if there is none.
  private func start(
    ofLineWith key: RecordKey, of collection: String, before end: Int, _ cursor: ByteCursor
  ) throws(RepositoryError) -> Int? {
    var (low, high) = (0, end)
    while low < high {
      var start = (low + high) / 2
      // No value has a line feed, so the byte behind a line feed begins a line.
      while start > low, cursor.bytes[start - 1] != 0x0A { start -= 1 }
      let found = try self.key(ofLineAt: start, of: collection, cursor)
      if found == key { return start }
      if key < found {
        high = start
      } else {
        low = start + 1
        while low < high, cursor.bytes[low - 1] != 0x0A { low += 1 }
      }
    }
    return nil
  }

  private func key(ofLineAt start: Int, of collection: String, _ cursor: ByteCursor) throws(RepositoryError) -> RecordKey {
    var cursor = cursor
    cursor.offset = start
    try cursor.expect(#"{"in":""#)
    guard try cursor.string() == collection else { throw cursor.corrupted("expected a line of \(collection)", at: start) }
    try cursor.expect(#","id":""#)
    return RecordKey(try cursor.string())
  }
}

/// An open file that snapshots read, also after another file has taken its name.
final class SnapshotFile: Sendable {
  private let file: Mutex<(any OpenFile)?>
  let path: String

  init(_ file: any OpenFile, path: String) {
    self.file = Mutex(file)
    self.path = path
  }

  deinit { supersede() }

  /// Throws `.superseded` after ``supersede(isSpaceNeeded:)``.
  func check() throws(RepositoryError) { _ = try openFile() }

  /// Reads bytes of the file, or fewer at its end.
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    let file = try openFile()
    do throws(RepositoryError) { return try file.read(at: offset, count: count) } catch { throw error.naming(path) }
  }

  /// Closes the file as soon as no read of it is running.
  ///
  /// Later reads throw `.superseded`.
  /// - Parameter isSpaceNeeded: True to close the file before the call returns, if no read is running.
  func supersede(isSpaceNeeded: Bool = false) {
    guard let old = file.withLock({ $0.take() }), !isSpaceNeeded else { return }
    // The system frees the space of a large file slowly, and this thread may be the main thread or the store's executor.
    DispatchQueue.global(qos: .utility).async { withExtendedLifetime(old) {} }
  }

  private func openFile() throws(RepositoryError) -> any OpenFile {
    guard let file = file.withLock({ $0 }) else { throw .oldMainFile(path) }
    return file
  }
}

/// The records of a JSON store as of one commit: the lines of a main file, and the changes since that file was written.
final class JSONFileBase: StoredBase {
  let commit: Revision
  private let main: PagedMainFile
  private let changes: PersistentTree<ChangedRecord>
  private let indexes: [StoredIndexID: RunKeys]

  init(_ main: PagedMainFile, _ changes: PersistentTree<ChangedRecord>, _ indexes: [StoredIndexID: RunKeys], commit: Revision) {
    (self.main, self.changes, self.indexes, self.commit) = (main, changes, indexes, commit)
  }

  func boundaries(of index: StoredIndexID) throws(RepositoryError) -> [Data] { try keys(of: index).boundaries() }

  func indexKeys(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> [Data] {
    try keys(of: index).keys(from: lower, below: upper)
  }

  func indexKeyCount(of index: StoredIndexID, from lower: Data, below upper: Data?) throws(RepositoryError) -> Int {
    try keys(of: index).count(from: lower, below: upper)
  }

  private func keys(of index: StoredIndexID) throws(RepositoryError) -> RunKeys {
    guard let keys = indexes[index] else { throw .storesNoIndexes(index.collection) }
    return keys
  }

  func records(_ keys: [RecordKey], of collection: String) throws(RepositoryError) -> [StoredRecord?] {
    let section = main.index.section(of: collection)
    var (found, last): ([StoredRecord?], PagedMainFile.Block?) = ([], nil)
    for key in keys {
      var record: StoredRecord?
      if let change = changes.find(RecordAddress(collection: collection, key: key)) {
        record = change.record.detached
      } else if let section {
        record = try main.line(of: key, in: section, last: &last)
      }
      found.append(record?.value == nil ? nil : record)
    }
    return found
  }

  func records(of collection: String, after key: RecordKey?, limit: Int) throws(RepositoryError) -> [StoredRecord] {
    let section = main.index.section(of: collection)
    var (run, start, last): (BlockOfRecords, RecordKey?, PagedMainFile.Block?) = (.init(limit: limit), key, nil)
    while !run.isFull {
      let edits = edits(of: collection, after: start, limit: max(limit, 256))
      // Behind the last of these changes there may be others, so the lines up to it are merged first.
      let end = edits.count < max(limit, 256) ? nil : edits.last?.key
      try merge(edits, with: section, after: start, through: end, into: &run, last: &last)
      guard let end else { break }
      start = end
    }
    return run.records
  }

  /// Adds the lines and the changes of a range of keys to an answer, in the order of the keys.
  private func merge(
    _ edits: [StoredRecord], with section: MainFileIndex.Section?, after start: RecordKey?, through end: RecordKey?,
    into run: inout BlockOfRecords, last: inout PagedMainFile.Block?
  ) throws(RepositoryError) {
    var edits = edits[...]
    if let section {
      var number = start.flatMap(section.block) ?? 0
      while number < section.keys.count, !run.isFull, end.map({ section.keys[number] <= $0 }) ?? true {
        for line in try main.lines(ofBlock: number, of: section, last: &last) {
          if let start, !(start < line.key) { continue }
          if let end, end < line.key { break }
          while let edit = edits.first, edit.key < line.key { run.add(edits.removeFirst()) }
          if edits.first?.key == line.key { run.add(edits.removeFirst()) } else { run.add(line) }
          if run.isFull { return }
        }
        number += 1
      }
    }
    for edit in edits { run.add(edit) }
  }

  /// Returns the changes after a key in the order of their keys, records and tombstones, at most as many as the limit.
  private func edits(of collection: String, after key: RecordKey?, limit: Int) -> [StoredRecord] {
    var edits: [StoredRecord] = []
    // The empty text is the least key.
    changes.forEach(from: RecordAddress(collection: collection, key: key ?? RecordKey(""))) { change in
      guard change.record.collection == collection, edits.count < limit else { return false }
      if change.record.key != key { edits.append(change.record) }
      return true
    }
    return edits
  }

  /// The records of one answer, which ends at a number of records or at a length of the values.
  private struct BlockOfRecords {
    private(set) var records: [StoredRecord] = []
    private(set) var isFull = false
    private var size = 0
    private let limit: Int

    /// Length of the values after which an answer ends.
    private static let sizeLimit = 1 << 20

    init(limit: Int) { self.limit = limit }

    mutating func add(_ record: StoredRecord) {
      guard !isFull, let value = record.value else { return }
      size += value.count
      if size > Self.sizeLimit, !records.isEmpty {
        isFull = true
      } else {
        // A slice of a block or of the journal would keep all of its bytes in memory.
        records.append(record.detached)
        isFull = records.count >= limit
      }
    }
  }
}

/// A record or tombstone that was changed since the main file was written.
struct ChangedRecord: TreeEntry {
  typealias Summary = NoSummary<ChangedRecord>

  let record: StoredRecord
  var key: RecordAddress { record.address }

  /// An entry has references to its collection, key and value, so a leaf has few entries, which a copy of the leaf retains.
  static var leafCapacity: Int { 16 }
}

extension PersistentTree<ChangedRecord> {
  /// Makes a tree of changed records.
  init(_ changes: [RecordAddress: StoredRecord]) {
    // Sorting the keys of each collection alone takes a fifth of the time of sorting the records.
    let groups = Dictionary(grouping: changes.values, by: \.collection).sorted { RecordKey($0.key) < RecordKey($1.key) }
    self.init(
      sorted: groups.flatMap { _, records in
        let keys = records.map(\.key)
        return keys.indices.sorted { keys[$0] < keys[$1] }.map { ChangedRecord(record: records[$0]) }
      })
  }
}

extension RepositoryError {
  /// The error for a read of a main file that later checkpoints have replaced.
  fileprivate static func oldMainFile(_ path: String) -> RepositoryError {
    RepositoryError(.superseded, "the records of this old snapshot are gone, because the store went on; take a new snapshot", file: path)
  }
}
