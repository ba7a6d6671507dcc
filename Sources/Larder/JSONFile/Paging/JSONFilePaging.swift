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
    /// False after a write of the index file has failed.
    var isWritable = true
    /// True if the indexes were dropped for the space on a full disk, so that none is built before the next checkpoint.
    var isShed = false
    /// Newest record or tombstone of every address that was changed since the main file was written.
    var changes: PersistentTree<ChangedRecord>
    var counts: Counts
    var indexes: JSONFileIndexes
    /// Hash of the journal's frames, as far as they were read, or `nil` before the first one.
    var sum: JournalSum?
    /// The main file with a descriptor of its own, once a base has needed it.
    var main: PagedMainFile?

    /// The index file, unless a write of it has failed.
    var writableFile: IndexFile? { isWritable ? file : nil }

    /// Size of the main file and the index file in bytes.
    var size: Int { index.identity.size + (file?.end ?? 0) }
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
    /// The index file beside the main file.
    weak var keys: SnapshotFile?
    /// Size of both files in bytes.
    let size: Int

    func supersede(isSpaceNeeded: Bool = false) {
      main?.supersede(isSpaceNeeded: isSpaceNeeded)
      keys?.supersede(isSpaceNeeded: isSpaceNeeded)
    }
  }

  /// Largest number of replaced main files that are open, each of which takes a descriptor.
  private static let replacedLimit = 8
  /// Size in bytes up to which all replaced main files together stay open, even if the main file is small.
  private static let replacedSizeLimit = 16 << 20
  /// Number of changed records after which the counts are written to the index file.
  ///
  /// An opening after a crash looks up each record that was changed later in the main file, at some 10 µs a record.
  private static let unsavedLimit = 256
  /// Number of changed records after which the counts are written even if an index lacks changes, and that index is dropped.
  private static let behindLimit = 4_096

  /// Begins to leave the records in the files of a store.
  ///
  /// - Parameters:
  ///   - main: The main file.
  ///   - commit: Commit of the main file.
  ///   - stored: The index file, if there is one.
  ///   - changes: Newest record or tombstone of every address that was changed since the main file was written.
  ///   - uncounted: The changes after the slot of the index file that is used, or `nil` without a journal.
  /// - Returns: The counts as of the newest commit.
  mutating func begin(
    _ main: PagedMainFile, at commit: UInt64, stored: IndexFile.Stored?, changes: [RecordAddress: StoredRecord],
    uncounted: UncountedChanges?
  ) throws(RepositoryError) -> [String: CollectionCount] {
    var counts = main.index.counts
    if let uncounted { counts = try uncounted.total(of: changes, over: main) }
    let slot = uncounted == nil ? stored?.slot(ofMainFileAt: commit) : uncounted?.slot
    begin(
      main.index, file: stored?.file(keeping: slot), changes: changes, counts: counts, sum: uncounted?.sum,
      isSaved: stored != nil && uncounted?.changes.isEmpty == true, main: main,
      indexes: JSONFileIndexes(slot, in: stored?.reader, missed: uncounted?.changes ?? [:]))
    // The limit holds for the changes of several sessions together, and leaves this session the time to catch up.
    current?.counts.unsavedCount = min(uncounted?.changes.count ?? 0, Self.behindLimit)
    return counts
  }

  /// Begins to leave the records in the files of a store whose main file has an index.
  ///
  /// - Parameters:
  ///   - file: The index file, or `nil` if there is none.
  ///   - changes: Newest record or tombstone of every address that was changed since the main file was written.
  ///   - counts: The counts as of the newest commit, or `nil` if they are unknown.
  ///   - sum: Hash of all frames of the journal, if there is one.
  ///   - isSaved: True if the index file has the counts of the newest commit.
  ///   - main: The main file with a descriptor of its own, if it is open.
  ///   - indexes: The indexes in the index file.
  mutating func begin(
    _ index: MainFileIndex, file: IndexFile?, changes: [RecordAddress: StoredRecord], counts: [String: CollectionCount]?,
    sum: JournalSum? = nil, isSaved: Bool = false, main: PagedMainFile? = nil, indexes: JSONFileIndexes = JSONFileIndexes()
  ) {
    let counts = Counts(collections: counts, savedSalt: isSaved ? sum?.salt : nil)
    current = Current(
      index: index, file: file, changes: PersistentTree(changes), counts: counts, indexes: indexes, sum: sum, main: main)
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
    guard let isSaving = current.map({ $0.writableFile != nil }) else { return false }
    current?.indexes.apply(batch, isSaving: isSaving)
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

  /// Writes the counts and the new edits of the indexes as of a commit to the index file, if the counts are known and were changed.
  ///
  /// - Parameters:
  ///   - commit: The newest commit.
  ///   - journal: The journal, which ends with the commit, or `nil` if the main file has the commit.
  mutating func save(at commit: UInt64, of journal: JournalWriter?) {
    guard let present = current, let collections = present.counts.collections, var file = present.writableFile,
      present.counts.unsavedCount > 0 || present.indexes.areUnsaved || present.counts.savedSalt != journal?.header.salt
    else { return }
    // The index file is a cache, so without the counts only the next opening takes longer.
    do throws(RepositoryError) {
      var sum: JournalSum?
      if let journal {
        var frames = present.sum ?? JournalSum(salt: journal.header.salt)
        if frames.salt != journal.header.salt { frames = JournalSum(salt: journal.header.salt) }
        try frames.addFrames(of: journal.file, before: journal.end)
        sum = frames
        current?.sum = frames
      }
      var indexes = present.indexes
      if indexes.areBehind {
        // After the slot is written, an index that lacks changes before the commit cannot be brought up to date. Without the slot, the next
        // opening counts more records.
        guard present.counts.unsavedCount > Self.behindLimit else { return }
        indexes.dropBehind()
      }
      current?.indexes = JSONFileIndexes()
      defer { current?.indexes = indexes }
      try file.save(&indexes, at: commit, journal: sum?.hash.value ?? SealHash().value, collections)
      current?.file = file
      current?.counts.unsavedCount = 0
      current?.counts.savedSalt = sum?.salt
    } catch {
      // Without an end of the attempts, every commit would read the journal again.
      current?.isWritable = false
      // The parts of the failed save are cut, so that a full disk has their space again.
      if var old = present.file { old.cut(to: old.end) }
    }
  }

  /// Returns the number of records of each changed collection after some changes, or nothing if the present number cannot be found out.
  ///
  /// - Parameter records: The changed records and tombstones, each address once.
  func recordCounts(after records: [StoredRecord]) -> [String: Int] {
    guard let current, let main = current.main, let known = current.counts.collections else { return [:] }
    var (counts, last): ([String: Int], PagedMainFile.Block?) = ([:], nil)
    for record in records.sorted(by: { $0.address < $1.address }) {
      let old = current.changes.find(record.address).map(\.record)
      let wasPresent: Bool
      do throws(RepositoryError) {
        wasPresent = if let old { old.value != nil } else { try main.record(at: record.address, last: &last) != nil }
      } catch {
        // Without the counts, the next opening looks up more records.
        return [:]
      }
      counts[record.collection, default: known[record.collection]?.records ?? 0] += (record.value == nil ? 0 : 1) - (wasPresent ? 1 : 0)
    }
    return counts
  }

  /// Writes the index file, unless the main file has one.
  mutating func writeIndexFile(like main: MainFile, paths: JSONFilePaths, in fileSystem: any FileSystem) {
    guard let current, current.file == nil,
      let file = IndexFile.write(current.index, at: main.header.commit, like: main, paths: paths, in: fileSystem)?.file,
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
    var file = index.file.flatMap { $0.takeName(paths: paths, in: fileSystem) ? $0 : nil }
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
    // Without its file, an index is built again by the next query.
    var indexes = JSONFileIndexes()
    if var new = file, let moved = current?.indexes.moved(to: index.indexes, in: &new) { (file, indexes) = (new, moved) }
    leaveMainFile()
    current = Current(
      index: index.index, file: file, changes: PersistentTree(changes), counts: Counts(collections: counts),
      indexes: indexes, sum: current?.sum)
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
    for file in replaced { file.supersede(isSpaceNeeded: true) }
    replaced = kept.map { [$0] } ?? []
    return !open.isEmpty
  }

  /// Closes the oldest replaced main files if there are too many, or if with their index files they are larger than 16 MiB and twice the
  /// present ones.
  ///
  /// A replaced main file takes its space on the disk until it is closed, so a forgotten snapshot would fill the disk.
  private mutating func closeReplaced(leaving limit: Int) {
    guard !replaced.isEmpty, let size = current?.size else { return }
    replaced.removeAll { $0.main == nil }
    // The store reads the newest of them until it takes a newer base.
    let kept = hasOldBase ? replaced.popLast() : nil
    var total = replaced.reduce(0) { $0 + $1.size }
    while let oldest = replaced.first, replaced.count > limit || total > max(2 * size, Self.replacedSizeLimit) {
      total -= oldest.size
      oldest.supersede()
      replaced.removeFirst()
    }
    if let kept { replaced.append(kept) }
  }

  /// Adds the main file to the replaced ones, if a base has it.
  private mutating func leaveMainFile() {
    guard let current, let main = current.main else { return }
    closeReplaced(leaving: Self.replacedLimit - 1)
    hasOldBase = true
    replaced.append(WeakMainFile(main: main, keys: current.file?.reader, size: current.size))
  }

  /// Returns the records as of a commit, which must be the newest one.
  mutating func base(
    at commit: UInt64, of main: MainFile, path: String, in fileSystem: any FileSystem
  ) throws(RepositoryError) -> JSONFileBase? {
    guard let current else { return nil }
    let paged = if let paged = current.main { paged } else { try PagedMainFile(main, current.index, at: path, in: fileSystem) }
    self.current?.main = paged
    hasOldBase = false
    return JSONFileBase(paged, current.changes, current.indexes.keys, commit: Revision(commit))
  }
}

/// Indexes in the index file.
extension JSONFilePaging {
  /// The complete indexes, for the index file of the next main file.
  var indexDrafts: [IndexDraft] { current?.indexes.drafts ?? [] }

  /// Drops all indexes and frees their space, so that commits to a full disk have room.
  ///
  /// - Returns: True if the index file had parts.
  mutating func shedIndexes() -> Bool {
    guard var file = current?.file, file.end > file.start else { return false }
    current?.indexes.dropAll(in: &file)
    current?.file = file
    current?.isWritable = true
    current?.isShed = true
    return true
  }

  /// Frees the space in the index file that an earlier process has left without a use.
  mutating func trimIndexFile() {
    guard let indexes = current?.indexes, var file = current?.file else { return }
    indexes.trim(&file)
    current?.file = file
  }

  func holdsIndex(_ index: StoredIndexID) -> Bool { current?.indexes.holds(index) ?? false }
  mutating func dropIndex(_ index: StoredIndexID) {
    guard var file = current?.file else { return }
    current?.indexes.dropBuild(of: index, in: &file)
    current?.file = file
  }

  /// Notes that a background checkpoint has begun, whose index file will have the keys as they are now.
  mutating func beginFold() { current?.indexes.beginFold() }
  mutating func cancelFold() { current?.indexes.cancelFold() }

  /// Adds keys to an index that is being built.
  mutating func extendIndex(_ index: StoredIndexID, by keys: [Data], isFirst: Bool, path: String) throws(RepositoryError) {
    let room = max(2 * (current?.index.identity.size ?? 0), Self.replacedSizeLimit)
    try changeIndexes(path) { (indexes, file) throws(RepositoryError) in
      try indexes.extend(index, by: keys, isFirst: isFirst, in: &file, room: room)
    }
  }

  /// Completes an index that has all keys.
  mutating func completeIndex(_ index: StoredIndexID, path: String) throws(RepositoryError) {
    try changeIndexes(path) { (indexes, file) throws(RepositoryError) in try indexes.complete(index, in: &file) }
  }

  private mutating func changeIndexes(
    _ path: String, _ body: (inout JSONFileIndexes, inout IndexFile) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    guard var indexes = current?.indexes, var file = current?.writableFile, current?.isShed == false else { throw .storesNoIndexes(path) }
    current?.indexes = JSONFileIndexes()
    defer {
      current?.indexes = indexes
      current?.file = file
    }
    try body(&indexes, &file)
  }

  /// Returns the changes that an index lacks, with the records before and after them.
  func missedChanges(of index: StoredIndexID) throws(RepositoryError) -> [MissedChange] {
    guard let current else { return [] }
    var (missed, last): ([MissedChange], PagedMainFile.Block?) = ([], nil)
    for (address, before) in current.indexes.missedChanges(of: index) {
      guard let main = current.main else { throw .storesNoIndexes(index.collection) }
      let old = try before.record(at: address, in: main, last: &last)
      let new = current.changes.find(address)?.record
      missed.append(MissedChange(before: old?.detached, after: new?.value == nil ? nil : new?.detached))
    }
    return missed
  }

  /// Reads all keys of the indexes, compares their checksums, their order and their number, and drops the damaged indexes.
  ///
  /// - Returns: The error of each dropped index. The next query builds the index again.
  mutating func verifyIndexes() throws(RepositoryError) -> [RepositoryError] {
    var damage: [RepositoryError] = []
    for (index, keys) in current?.indexes.keys ?? [:] {
      do throws(RepositoryError) {
        // Reading a range compares the checksums, the order and the edits.
        var count = 0
        for (lower, upper) in try keys.ranges { count += try keys.keys(from: lower, below: upper).count }
        let expected = current?.counts.collections?[index.collection]?.records
        guard count == expected ?? count else { throw keys.run.reader.damage(in: keys.run.part) }
      } catch {
        guard error.code == .corrupted else { throw error }
        damage.append(error)
        dropIndex(index)
      }
    }
    return damage
  }

  mutating func catchUpIndex(_ index: StoredIndexID, by edits: [IndexEdit]) {
    let isSaving = current?.writableFile != nil
    current?.indexes.catchUp(index, by: edits, isSaving: isSaving)
  }
}
