internal import Foundation

/// The part of an open JSON store that leaves the records in the files: the index of the main file, the later changes, and the counts.
///
/// A store whose records are in memory has a `JSONFilePaging` without an index, which does nothing.
struct JSONFilePaging: Sendable {
  private var current: Current?
  /// Main files that checkpoints have replaced and that snapshots may still read, the oldest first.
  private var replaced: [WeakMainFile] = []
  /// Whether a checkpoint has replaced the main file since the store last asked for a base.
  private(set) var hasOldBase = false

  private struct Current: Sendable {
    let index: MainFileIndex
    var file: IndexFile?
    /// Newest record or tombstone of every address that was changed since the main file was written.
    var changes: PersistentTree<ChangedRecord>
    var counts: Counts
    /// Hash of the journal's frames, as far as they were read, or `nil` before the first one.
    var sum: JournalSum?
    /// The main file with a descriptor of its own, once a base has needed it.
    var main: PagedMainFile?
  }

  /// The counts of the collections as of the newest commit, as far as they are known.
  struct Counts: Sendable {
    /// The count of each collection, or `nil` after a commit that did not say how many records it left.
    var collections: [String: CollectionCount]?
    /// Number of records that were changed since the counts were last written to the index file.
    var unsavedCount = 0
    /// Salt of the journal whose newest counts are in the index file.
    var savedSalt: UInt32?
  }

  private struct WeakMainFile: Sendable {
    weak var main: PagedMainFile?
  }

  /// Largest number of replaced main files that are open, each of which takes a descriptor.
  private static let replacedLimit = 8
  /// Size in bytes up to which all replaced main files together stay open, even if the main file is small.
  private static let replacedSizeLimit = 16 << 20
  /// Number of changed records after which the counts are written to the index file.
  ///
  /// An opening after a crash looks up each record that was changed later in the main file, at some 10 µs a record.
  private static let unsavedLimit = 256

  /// Begins to leave the records in the files of a store whose main file has an index.
  ///
  /// - Parameters:
  ///   - file: The index file, or `nil` if there is none.
  ///   - changes: Newest record or tombstone of every address that was changed since the main file was written.
  ///   - counts: The counts as of the newest commit, or `nil` if they are unknown.
  ///   - sum: Hash of all frames of the journal, if there is one.
  ///   - isSaved: True if the index file has the counts of the newest commit.
  ///   - main: The main file with a descriptor of its own, if it is open.
  mutating func begin(
    _ index: MainFileIndex, file: IndexFile?, changes: [RecordAddress: StoredRecord], counts: [String: CollectionCount]?,
    sum: JournalSum? = nil, isSaved: Bool = false, main: PagedMainFile? = nil
  ) {
    let counts = Counts(collections: counts, savedSalt: isSaved ? sum?.salt : nil)
    current = Current(index: index, file: file, changes: Self.tree(changes), counts: counts, sum: sum, main: main)
  }

  private static func tree(_ changes: [RecordAddress: StoredRecord]) -> PersistentTree<ChangedRecord> {
    // Sorting the keys of each collection alone takes a fifth of the time of sorting the records.
    let groups = Dictionary(grouping: changes.values, by: \.collection).sorted { RecordKey($0.key) < RecordKey($1.key) }
    return PersistentTree(
      sorted: groups.flatMap { _, records in
        let keys = records.map(\.key)
        return keys.indices.sorted { keys[$0] < keys[$1] }.map { ChangedRecord(record: records[$0]) }
      })
  }

  /// Whether the store leaves records in its files.
  var isActive: Bool { current != nil }

  /// Adds the changes of a batch that was appended to the journal.
  mutating func note(_ records: [StoredRecord]) {
    guard current != nil else { return }
    for record in records { current?.changes.insert(ChangedRecord(record: record)) }
  }

  /// Counts the records of a batch that was committed.
  ///
  /// - Returns: True if the counts should be written to the index file.
  mutating func count(_ batch: WriteBatch) -> Bool {
    guard current != nil else { return false }
    // The store has probably taken a newer base since the last commit, so only snapshots read the replaced main files.
    closeReplaced(leaving: Self.replacedLimit)
    for record in batch.records {
      guard let count = batch.recordCounts[record.collection] else {
        current?.counts.collections = nil
        return false
      }
      current?.counts.collections?[record.collection, default: CollectionCount()].records = count
      current?.counts.collections?[record.collection]?.note(record)
    }
    current?.counts.unsavedCount += batch.records.count
    return current?.counts.unsavedCount ?? 0 >= Self.unsavedLimit
  }

  /// Writes the counts of the newest commit to the index file, if they are known and were changed.
  mutating func saveCounts(of journal: JournalWriter) {
    guard let present = current, let collections = present.counts.collections, present.file != nil,
      present.counts.unsavedCount > 0 || present.counts.savedSalt != journal.header.salt
    else { return }
    // The index file is a cache, so without the counts only the next opening takes longer.
    do throws(RepositoryError) {
      var sum = present.sum ?? JournalSum(salt: journal.header.salt)
      if sum.salt != journal.header.salt { sum = JournalSum(salt: journal.header.salt) }
      try sum.addFrames(of: journal.file, before: journal.end)
      current?.sum = sum
      let counts = IndexFileSlots.Counts(commit: journal.lastCommit, journal: sum.hash.value, collections: collections)
      if current?.file?.save(counts) == true {
        current?.counts.unsavedCount = 0
        current?.counts.savedSalt = sum.salt
      } else {
        current?.file = nil
      }
    } catch {
      // Without an end of the attempts, every commit would read the journal again.
      current?.file = nil
    }
  }

  /// Writes the index file, unless the main file has one.
  mutating func writeIndexFile(like main: MainFile, paths: JSONFilePaths, in fileSystem: any FileSystem) {
    guard let current, current.file == nil, let file = IndexFile.write(current.index, like: main, paths: paths, in: fileSystem),
      file.takeName(paths: paths, in: fileSystem)
    else { return }
    self.current?.file = file
    // The counts must be written to the new file, even if no further commit comes.
    self.current?.counts.savedSalt = nil
  }

  /// Goes on with a new main file, and gives its index file its name.
  ///
  /// - Parameter changes: Newest record or tombstone of every address that the new main file lacks.
  mutating func moveOn(
    to index: NewIndex, changes: [RecordAddress: StoredRecord], paths: JSONFilePaths, in fileSystem: any FileSystem
  ) {
    let file = index.file.flatMap { $0.takeName(paths: paths, in: fileSystem) ? $0 : nil }
    leaveMainFile()
    var counts: [String: CollectionCount]? = index.index.counts
    if !changes.isEmpty {
      // The new main file lacks the newest commits. The batches of these commits have named the numbers of records.
      counts = current?.counts.collections.map { known in
        var counts = index.index.counts
        for change in changes.values { counts[change.collection, default: CollectionCount()].note(change) }
        for (name, count) in known { counts[name, default: CollectionCount()].records = count.records }
        return counts
      }
    }
    current = Current(
      index: index.index, file: file, changes: Self.tree(changes), counts: Counts(collections: counts), sum: current?.sum)
  }

  /// Goes on with a new main file that has no index, so that the next base reads the whole main file.
  mutating func moveOnWithoutIndex() {
    leaveMainFile()
    current = nil
  }

  /// Closes the replaced main files that only snapshots read, because a full disk needs their space.
  ///
  /// - Returns: True if a file was closed.
  mutating func closeReplaced() -> Bool {
    // The store reads the newest of them until it takes a newer base.
    let kept = hasOldBase ? replaced.popLast() : nil
    let open = replaced.compactMap(\.main)
    for file in open { file.supersede(isSpaceNeeded: true) }
    replaced = kept.map { [$0] } ?? []
    return !open.isEmpty
  }

  /// Closes the oldest replaced main files if there are too many, or if together they are larger than 16 MiB and twice the main file.
  ///
  /// A replaced main file takes its space on the disk until it is closed, so a forgotten snapshot would fill the disk.
  private mutating func closeReplaced(leaving limit: Int) {
    guard !replaced.isEmpty, let size = current?.index.identity.size else { return }
    replaced.removeAll { $0.main == nil }
    // The store reads the newest of them until it takes a newer base.
    let kept = hasOldBase ? replaced.popLast() : nil
    var total = replaced.reduce(0) { $0 + ($1.main?.index.identity.size ?? 0) }
    while let oldest = replaced.first, replaced.count > limit || total > max(2 * size, Self.replacedSizeLimit) {
      total -= oldest.main?.index.identity.size ?? 0
      oldest.main?.supersede()
      replaced.removeFirst()
    }
    if let kept { replaced.append(kept) }
  }

  /// Adds the main file to the replaced ones, if a base has it.
  private mutating func leaveMainFile() {
    guard let main = current?.main else { return }
    closeReplaced(leaving: Self.replacedLimit - 1)
    hasOldBase = true
    replaced.append(WeakMainFile(main: main))
  }

  /// Returns the records as of a commit, which must be the newest one.
  mutating func base(
    at commit: UInt64, of main: MainFile, path: String, in fileSystem: any FileSystem
  ) throws(RepositoryError) -> JSONFileBase? {
    guard let current else { return nil }
    let paged = if let paged = current.main { paged } else { try PagedMainFile(main, current.index, at: path, in: fileSystem) }
    self.current?.main = paged
    hasOldBase = false
    return JSONFileBase(paged, current.changes, commit: Revision(commit))
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

extension JSONFileStore {
  /// Returns the records as of the newest commit.
  ///
  /// Cost: the first call in a store that was opened with its records in memory reads the main file, unless there is an index file.
  /// - Throws: `.poisoned` after a failed sync, since the changes of the commit that has failed are in memory.
  func keepBase() throws(RepositoryError) -> any StoredBase {
    try checkHealth()
    if !paging.isActive {
      let header = try MainFileReader(source: .file(main.file), file: paths.mainFile).header().line
      let stored = header.withUnsafeBytes { IndexFile.read(of: main.file, header: $0, paths: paths, in: fileSystem) }
      let index = if let stored { stored.index } else { try MainFileIndex.read(main.file, path: paths.mainFile) }
      // Without the counts of the commits so far, the next opening counts the records that they have changed.
      paging.begin(index, file: stored?.file(keeping: nil), changes: allChanges, counts: allChanges.isEmpty ? index.counts : nil)
      paging.writeIndexFile(like: main, paths: paths, in: fileSystem)
    }
    guard let base = try paging.base(at: commit, of: main, path: paths.mainFile, in: fileSystem) else {
      throw RepositoryError(.closed, "the store is not open: open it first", file: paths.mainFile)
    }
    return base
  }

  /// The changes since the main file was written, with the changes that a running checkpoint is folding.
  private var allChanges: [RecordAddress: StoredRecord] {
    guard case .mainFile(_, let box) = folding?.part, let begun = box.value else { return changes }
    return begun.changes.merging(changes) { $1 }
  }

  /// Goes on with a main file, and with its index if the records stay in the files.
  func use(_ next: MainFile) {
    let isNew = next.file !== main.file
    main = next
    guard let index = main.newIndex.take() else {
      if isNew { paging.moveOnWithoutIndex() }
      return
    }
    paging.moveOn(to: index, changes: changes, paths: paths, in: fileSystem)
  }

  /// Writes the counts of the newest commit to the index file.
  func saveCounts() {
    guard let journal, journal.lastCommit == commit else { return }
    paging.saveCounts(of: journal)
  }
}

extension JSONFileBackend {
  /// Sizes that govern the journal and the document, and whose default values only tests change.
  package struct Tuning: Sendable {
    /// Unit in bytes in which space for the journal is allocated, a multiple of 512.
    package var journalChunk = 64 << 10
    /// Size of the document in bytes up to which a pause in writing or a close rewrites the document for any change.
    package var smallFile = 1 << 20
    /// Size of the journal in bytes beyond which a store that leaves its records in the files folds the journal.
    package var pagedJournal = 16 << 20

    package init(journalChunk: Int = 64 << 10, smallFile: Int = 1 << 20, pagedJournal: Int = 16 << 20) {
      (self.journalChunk, self.smallFile, self.pagedJournal) = (journalChunk, smallFile, pagedJournal)
    }
  }

  /// The lengths of the document and the journal together, or `nil` if the document does not exist or cannot be read.
  public var valueSizeBound: ByteCount? {
    // An error of reading the sizes is found and thrown by the opening.
    do throws(RepositoryError) {
      guard let main = try fileSystem.status(of: paths.mainFile) else { return nil }
      return .bytes(main.size + (try fileSystem.status(of: paths.journal)?.size ?? 0))
    } catch {
      return nil
    }
  }
}
