internal import Foundation

/// The commits that a journal adds to its main file.
struct JSONFileReplay: Sendable {
  let contents: JournalReader.Contents
  /// Newest record or tombstone of every address whose change the main file does not have.
  let changes: [RecordAddress: StoredRecord]
  /// Number of commits that the main file did not have.
  let commitCount: Int
  /// True if nothing may be appended to this journal, because the main file has newer commits or was written without a journal.
  ///
  /// The first happens after clearing a full disk, the second if the removal of a journal was never synced.
  let isBehind: Bool

  /// Reads the journal and collects the changes that the main file does not have yet.
  /// - Parameter start: Position after the known frames, or `nil` to read all.
  /// - Throws: `.corrupted` for a journal that is damaged or does not belong to that main file, `.newerSchema`.
  init(
    _ data: Data, over header: MainFileHeader, paths: JSONFilePaths, recovery: StoreOptions.Recovery,
    from start: JournalReader.Position? = nil
  ) throws(RepositoryError) {
    let reader = JournalReader(data: data, file: paths.journal, mainFileCommit: header.commit, start: start)
    var changes: [RecordAddress: StoredRecord] = [:]
    let contents = try reader.read { record throws(RepositoryError) in changes[record.address] = record }
    try Self.check(contents, continues: header, paths)
    // `.strict` promises an exact state, and a torn tail may have been an acknowledged commit.
    if contents.tail != .clean, recovery == .strict {
      throw RepositoryError(
        .corrupted, "the last commit is damaged or was never finished", file: paths.journal, offset: UInt64(contents.end))
    }
    self.contents = contents
    self.changes = changes
    commitCount = contents.lastCommit > header.commit ? Int(clamping: contents.lastCommit - header.commit) : 0
    isBehind = contents.lastCommit < header.commit || Self.isLeftover(contents, of: header)
  }

  /// True for an older journal that adds nothing to a main file which was written without a journal.
  private static func isLeftover(_ contents: JournalReader.Contents, of header: MainFileHeader) -> Bool {
    header.folded == MainFileHeader.noJournal && contents.header.generation < header.generation && contents.lastCommit <= header.commit
  }

  /// Throws for a journal that the header of the main file does not name: one of the two is a copy, or from another time.
  private static func check(
    _ contents: JournalReader.Contents, continues header: MainFileHeader, _ paths: JSONFilePaths
  ) throws(RepositoryError) {
    let journal = contents.header
    func mismatch(_ message: String, _ file: String? = nil) -> RepositoryError {
      RepositoryError(.corrupted, message, file: file ?? paths.journal, offset: 0)
    }
    // Main file and journal of two stores would merge into records that neither had.
    guard journal.storeID == header.storeID else { throw mismatch("the journal belongs to another store") }
    guard journal.generation <= header.generation else {
      throw mismatch("the main file is older than its journal; was it restored from a copy?", paths.mainFile)
    }
    // A journal of an older generation may begin earlier, since the crash came between the two renames of a checkpoint.
    guard journal.base <= header.commit, journal.generation < header.generation || journal.base == header.commit else {
      throw mismatch("the journal does not continue the main file")
    }
    // An older version wrote main files that name no journal.
    guard let next = header.journal else { return }
    // Generations are equal in two copies of one store. Tag and salt are random and distinguish them.
    let isFolded = journal.salt == header.folded || isLeftover(contents, of: header)
    guard journal.generation == header.generation ? journal.tag == next : isFolded else {
      throw mismatch(
        "the journal belongs to another copy of the main file; put that back, or move the journal away to open this one", paths.mainFile)
    }
  }
}

/// The contents of a store's main file and journal together.
struct JSONFileContents {
  let header: MainFileHeader
  /// Changes that the journal adds, or `nil` without a journal.
  let replay: JSONFileReplay?
  /// Tombstones in the main file, with the commits of their deletions.
  let tombstones: [RecordAddress: UInt64]

  /// Reads main file and journal, and passes every record to `visit` in its state at the newest commit.
  /// - Throws: as ``MainFileReader/read(_:begin:)`` and ``JSONFileReplay``.
  init(
    _ mainFile: MainFileSource, _ journal: Data?, _ paths: JSONFilePaths, _ recovery: StoreOptions.Recovery, _ limits: StoreOptions.Limits?,
    _ visit: (LoadedRecords) -> Void
  ) throws(RepositoryError) {
    var replay: JSONFileReplay?
    var changes: [RecordAddress: StoredRecord] = [:]
    var tombstones: [RecordAddress: UInt64] = [:]
    header = try MainFileReader(source: mainFile, file: paths.mainFile, limits: limits).read { packs, deleted in
      for pack in packs { visit(.pack(pack)) }
      for record in deleted {
        tombstones[record.address] = record.revision.number
        // The empty dictionary is the usual case, and hashing every address would cost more than the check.
        if changes.isEmpty || changes[record.address] == nil { visit(.record(record)) }
      }
    } begin: { header throws(RepositoryError) in
      guard let journal else { return [:] }
      // The changes are needed before the first line, to leave out the lines that they replace.
      let found = try JSONFileReplay(journal, over: header, paths: paths, recovery: recovery)
      (replay, changes) = (found, found.changes)
      return changes
    }
    // Grouped, because a pack ends at a change of another collection. Sorting takes forty times as long, copying the records three times.
    for indices in Dictionary(grouping: changes.indices, by: { changes[$0].key.collection }).values {
      for index in indices { visit(.record(changes[index].value)) }
    }
    self.replay = replay
    self.tombstones = tombstones
  }

  /// Report of opening, without the changes that recovery would make.
  var report: OpenReport {
    OpenReport(
      // After a full disk was cleared, the main file is newer than its journal.
      storeID: header.storeID, commit: Revision(max(header.commit, replay?.contents.lastCommit ?? 0)), isNew: false,
      replayedCommits: replay?.commitCount ?? 0, tombstoneHorizon: Revision(header.tombstonesSince))
  }
}
