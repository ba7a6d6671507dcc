internal import Foundation

/// The open index file beside a main file, to which the counts of later commits and the keys of indexes are written.
///
/// An index file is a cache. If it is missing, damaged or belongs to another main file, an opening reads the main file and makes the index
/// anew. So no error of an index file ends a commit or an opening.
struct IndexFile: Sendable {
  private let file: any OpenFile
  /// The reader of the parts that ``append(_:)`` has written.
  let reader: SnapshotFile
  private let slots: IndexFileSlots
  /// The slot that is written next: 0 or 1.
  private var next = 0
  /// Number of the next write of a slot.
  private var sequence: UInt64 = 1
  /// Offset behind the last part.
  private(set) var end: Int
  /// The background work that writes the file, which may be cancelled, or `nil` after that.
  private var work: BackgroundWork<MainFile>?
  private var synced = 0

  /// Number of bytes of the background work after which the file is synced.
  private static let syncSize = 2 << 20

  private init(_ file: any OpenFile, _ slots: IndexFileSlots, end: Int) {
    (self.file, self.slots, self.end) = (file, slots, end)
    reader = SnapshotFile(file, path: file.path)
  }

  /// Offset at which the parts begin.
  var start: Int { slots.end }

  /// An index that was read from its file, with the contents of the slots.
  struct Stored: Sendable {
    let index: MainFileIndex
    fileprivate let file: IndexFile
    fileprivate let allSlots: [IndexFileSlots.Slot?]

    /// The readable slots.
    struct Slots: Sendable {
      /// All slots, the newest first.
      var known: [IndexFileSlots.Slot] = []
      /// The newest slot that describes the main file alone, without a commit of a journal.
      var ofMainFile: IndexFileSlots.Slot?
    }

    var reader: SnapshotFile { file.reader }
    private var slots: [IndexFileSlots.Slot] { allSlots.compactMap { $0 }.sorted { $0.sequence > $1.sequence } }

    /// Returns the readable slots for a main file with a commit.
    func slots(at commit: UInt64) -> Slots { Slots(known: slots, ofMainFile: slot(ofMainFileAt: commit)) }

    /// Returns the newest slot that describes a main file with a commit, without a commit of a journal.
    func slot(ofMainFileAt commit: UInt64) -> IndexFileSlots.Slot? {
      slots.first { $0.commit == commit && $0.journal == SealHash().value }
    }

    /// Returns the index file, in which a slot that an opening has used is not the next one to be written.
    ///
    /// A torn write must leave the slot that an opening has used.
    func file(keeping slot: IndexFileSlots.Slot?) -> IndexFile {
      var file = file
      file.next = slot != nil && allSlots[0]?.sequence == slot?.sequence ? 1 : 0
      file.sequence = (slots.first?.sequence ?? 0) + 1
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
      var found: [IndexFileSlots.Slot?] = []
      for number in 0..<IndexFileSlots.count {
        let bytes = try file.read(at: slots.offset + number * slots.size, count: slots.size)
        found.append(bytes.withUnsafeBytes { slots.slot(in: $0) })
      }
      return Stored(index: index, file: IndexFile(file, slots, end: max(slots.end, try file.size())), allSlots: found)
    } catch {
      return nil
    }
  }

  /// Writes the index file of a main file durably under its temporary name, and returns `nil` if that fails.
  ///
  /// An index whose keys cannot be read is left out. If keys cannot be written, all indexes are left out. The next query builds them.
  static func write(
    _ index: MainFileIndex, _ drafts: [IndexDraft] = [], at commit: UInt64, like main: MainFile, paths: JSONFilePaths,
    in fileSystem: any FileSystem, _ work: BackgroundWork<MainFile>? = nil
  ) -> NewIndex? {
    let bytes = IndexFileFormat.bytes(of: index)
    do throws(RepositoryError) {
      return try replacement(paths, fileSystem).write(like: main) { file throws(RepositoryError) in
        try file.setMode(main.mode)
        try bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: 0) }
        let slots = IndexFileFormat.slots(behind: bytes, of: index)
        var new = IndexFile(file, slots, end: slots.end)
        new.work = work
        var indexes = JSONFileIndexes()
        for draft in drafts { try indexes.write(draft, to: &new) }
        if !drafts.isEmpty { try new.saveFirst(&indexes, at: commit, index.counts) }
        // Without the sync, the index file would often be lost with a power cut, and the next opening would read the whole main file.
        try file.sync()
        new.work = nil
        return NewIndex(index: index, file: new, indexes: indexes)
      }
    } catch {
      // The keys of the indexes take most of the space, and the next opening needs the rest more.
      return drafts.isEmpty || error.code == .cancelled ? nil : write(index, at: commit, like: main, paths: paths, in: fileSystem)
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

  /// Writes bytes behind the other parts.
  mutating func append(_ bytes: [UInt8]) throws(RepositoryError) -> IndexFilePart {
    // Another process may have written behind the end while this store was suspended.
    let offset = max(end, try file.size())
    try bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
    end = offset + bytes.count
    if let work {
      try work.check()
      // Without syncs during the writing, one sync at the end would write the whole file, and the sync of a commit would wait for it.
      if end - synced >= Self.syncSize {
        try file.sync()
        synced = end
      }
    }
    return IndexFilePart(offset: offset, size: bytes.count, checksum: bytes.withUnsafeBytes { CRC32C.checksum($0) })
  }

  /// Gives back the space of the parts from an offset on.
  mutating func cut(to offset: Int) {
    guard offset >= start, offset <= end else { return }
    // After a failed cut the bytes stay. No slot names them, and the next opening cuts them.
    do throws(RepositoryError) { try file.cut(to: offset) } catch {}
    end = offset
  }

  /// Writes the state of a commit over the older one of the first two slots.
  ///
  /// - Throws: `.tooLarge` if the collections have no room in a slot, and the errors of the file.
  mutating func save(
    _ indexes: inout JSONFileIndexes, at commit: UInt64, journal: UInt64, _ collections: [String: CollectionCount]
  ) throws(RepositoryError) {
    try write(&indexes, at: commit, journal: journal, collections, to: next)
    next = 1 - next
  }

  private mutating func saveFirst(
    _ indexes: inout JSONFileIndexes, at commit: UInt64, _ collections: [String: CollectionCount]
  ) throws(RepositoryError) {
    try write(&indexes, at: commit, journal: SealHash().value, collections, to: IndexFileSlots.count - 1)
  }

  private mutating func write(
    _ indexes: inout JSONFileIndexes, at commit: UInt64, journal: UInt64, _ collections: [String: CollectionCount], to number: Int
  ) throws(RepositoryError) {
    let (catalog, edits) = try indexes.save(to: &self)
    let slot = IndexFileSlots.Slot(
      sequence: sequence, commit: commit, journal: journal, catalog: catalog, edits: edits, collections: collections)
    guard let bytes = slots.bytes(slot) else {
      throw RepositoryError(.tooLarge, "expected collections that fit a slot of the index file, found more", file: file.path)
    }
    let offset = slots.offset + number * slots.size
    try bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
    sequence += 1
  }

  private static func replacement(_ paths: JSONFilePaths, _ fileSystem: any FileSystem) -> FileReplacement {
    FileReplacement(path: paths.index, fileSystem: fileSystem)
  }
}

/// The index of a main file that was written just now, and the index file if it could be written.
struct NewIndex: Sendable {
  let index: MainFileIndex
  let file: IndexFile?
  /// The indexes whose keys the index file has, as of the commit of the main file.
  let indexes: JSONFileIndexes
}
