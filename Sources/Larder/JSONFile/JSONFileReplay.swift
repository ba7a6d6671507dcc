internal import Foundation

/// The commits that a journal adds to its main file.
struct JSONFileReplay: Sendable {
  let contents: JournalReader.Contents
  /// Newest record or tombstone of every address (collection and key) that the journal has changed since the main file's commit.
  let changes: [RecordAddress: StoredRecord]
  /// Number of commits in the journal that the main file does not have.
  let commitCount: Int
  /// True if nothing may be appended to this journal, because the main file has newer commits or was written without a journal.
  ///
  /// The main file has newer commits after deletions on a full disk. A main file that was written without a journal may have an old journal
  /// beside it, if a crash came before the removal of that journal was synced.
  let isBehind: Bool

  /// Reads the journal and collects the changes that the main file does not have yet.
  ///
  /// - Parameter start: Position behind the frames that the store has already read, or `nil` to read all frames.
  /// - Throws: `.corrupted` for a journal that is damaged or does not belong to that main file, `.newerSchema`.
  init(
    _ data: Data, over header: MainFileHeader, paths: JSONFilePaths, recovery: StoreOptions.Recovery,
    from start: JournalReader.Position? = nil
  ) throws(RepositoryError) {
    let reader = JournalReader(data: data, file: paths.journal, mainFileCommit: header.commit, start: start)
    var changes: [RecordAddress: StoredRecord] = [:]
    let contents = try reader.read { record throws(RepositoryError) in changes[record.address] = record }
    try Self.check(contents, continues: header, paths)
    // `.strict` refuses a store that may lack its last commit, and a torn tail may have been an acknowledged commit.
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

  /// Throws if the header of the main file does not name the journal.
  ///
  /// Main file and journal do not match if one of the two is a copy, or is from another time.
  private static func check(
    _ contents: JournalReader.Contents, continues header: MainFileHeader, _ paths: JSONFilePaths
  ) throws(RepositoryError) {
    let journal = contents.header
    func mismatch(_ message: String, _ file: String? = nil) -> RepositoryError {
      RepositoryError(.corrupted, message, file: file ?? paths.journal, offset: 0)
    }
    // Main file and journal of two different stores would merge into records that neither store had.
    guard journal.storeID == header.storeID else { throw mismatch("the journal belongs to another store") }
    guard journal.generation <= header.generation else {
      throw mismatch("the main file is older than its journal; was it restored from a copy?", paths.mainFile)
    }
    // A crash between the two renames of a checkpoint leaves a new main file with the journal of the older generation. The journal of the
    // older generation may begin before the main file's commit.
    guard journal.base <= header.commit, journal.generation < header.generation || journal.base == header.commit else {
      throw mismatch("the journal does not continue the main file")
    }
    // Main files of an older version of Larder name no journal, so there is no tag to compare.
    guard let next = header.journal else { return }
    // Two copies of one store have equal generations. Only the random tag and salt show to which copy a journal belongs.
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
  ///
  /// - Throws: as ``MainFileReader/read(_:begin:)`` and ``JSONFileReplay``.
  init(
    _ mainFile: MainFileSource, journal: Data?, paths: JSONFilePaths, recovery: StoreOptions.Recovery, limits: StoreOptions.Limits?,
    _ visit: (LoadedRecords) -> Void
  ) throws(RepositoryError) {
    var replay: JSONFileReplay?
    var changes: [RecordAddress: StoredRecord] = [:]
    var tombstones: [RecordAddress: UInt64] = [:]
    header = try MainFileReader(source: mainFile, file: paths.mainFile, limits: limits).read { packs, deleted in
      for pack in packs { visit(.pack(pack)) }
      for record in deleted {
        tombstones[record.address] = record.revision.number
        // Most stores open without changes in the journal. Without changes in the journal, the `isEmpty` check saves hashing the address of
        // each tombstone.
        if changes.isEmpty || changes[record.address] == nil { visit(.record(record)) }
      }
    } begin: { header throws(RepositoryError) in
      guard let journal else { return [:] }
      // The journal is read before the first line of the main file, so that lines which the journal replaces are left out.
      let found = try JSONFileReplay(journal, over: header, paths: paths, recovery: recovery)
      (replay, changes) = (found, found.changes)
      return changes
    }
    // Changes are visited grouped by collection, because a pack (a block of records in memory) ends where the collection changes. Sorting
    // would take forty times as long as grouping indices, and copying the records three times as long.
    for indices in Dictionary(grouping: changes.indices, by: { changes[$0].key.collection }).values {
      for index in indices { visit(.record(changes[index].value)) }
    }
    self.replay = replay
    self.tombstones = tombstones
  }

  /// Report of opening the store, before recovery adds the changes that it makes.
  var report: OpenReport {
    OpenReport(
      // After deletions on a full disk, the main file may be newer than its journal, so the newest commit is the larger of the two.
      storeID: header.storeID, commit: Revision(max(header.commit, replay?.contents.lastCommit ?? 0)), isNew: false,
      replayedCommits: replay?.commitCount ?? 0, tombstoneHorizon: Revision(header.tombstonesSince))
  }
}
