internal import Foundation

/// The commits of a journal that the main file does not have.
struct JSONFileReplay: Sendable {
  let contents: JournalReader.Contents
  /// Newest record or tombstone of every address (collection and key) that the journal has changed since the main file's commit.
  let changes: [RecordAddress: StoredRecord]
  /// Number of commits in the journal that the main file does not have.
  let commitCount: Int
  /// True if nothing may be appended to the journal, because the main file has newer commits or was written without a journal.
  ///
  /// After deletions on a full disk, the main file has newer commits than the journal. A main file that was written without a journal may
  /// have an old journal beside it, if a crash came before the removal of the old journal was synced.
  let isBehind: Bool

  /// Reads a journal and collects the changes that the main file does not have yet.
  ///
  /// - Parameter start: Position in the journal behind the frames that the store has already read, or `nil` to read all frames.
  /// - Throws: `.corrupted` for a journal that is damaged or does not belong to the main file, `.newerSchema`.
  init(
    _ data: Data, over header: MainFileHeader, paths: JSONFilePaths, recovery: StoreOptions.Recovery,
    from start: JournalReader.Position? = nil
  ) throws(RepositoryError) {
    let reader = JournalReader(data: data, file: paths.journal, mainFileCommit: header.commit, start: start)
    var changes: [RecordAddress: StoredRecord] = [:]
    let contents = try reader.read { record throws(RepositoryError) in changes[record.address] = record }
    try Self.check(contents, continues: header, paths)
    // The option `.strict` refuses a store that may lack its last commit. An unfinished write at the end of the journal may be an
    // acknowledged commit that was damaged.
    if contents.tail != .clean, recovery == .strict {
      throw RepositoryError(
        .corrupted, "the last commit is damaged or was never finished", file: paths.journal, offset: UInt64(contents.end))
    }
    self.contents = contents
    self.changes = changes
    commitCount = contents.lastCommit > header.commit ? Int(clamping: contents.lastCommit - header.commit) : 0
    isBehind = contents.lastCommit < header.commit || Self.isLeftover(contents, of: header)
  }

  /// True if the main file was written without a journal, and the journal is older and has no commit that the main file lacks.
  private static func isLeftover(_ contents: JournalReader.Contents, of header: MainFileHeader) -> Bool {
    header.folded == MainFileHeader.noJournal && contents.header.generation < header.generation && contents.lastCommit <= header.commit
  }

  /// Throws if the header of the main file does not match the header of the journal.
  ///
  /// Main file and journal do not match if one of them was replaced by a copy or by an older version.
  private static func check(
    _ contents: JournalReader.Contents, continues header: MainFileHeader, _ paths: JSONFilePaths
  ) throws(RepositoryError) {
    let journal = contents.header
    func mismatch(_ message: String, _ file: String? = nil) -> RepositoryError {
      RepositoryError(.corrupted, message, file: file ?? paths.journal, offset: 0)
    }
    // If main file and journal were of different stores, their records would be mixed.
    guard journal.storeID == header.storeID else { throw mismatch("the journal belongs to another store") }
    guard journal.generation <= header.generation else {
      throw mismatch("the main file is older than its journal; was it restored from a copy?", paths.mainFile)
    }
    // A crash between the two renames of a checkpoint leaves a new main file with the journal of the older generation. A journal of an
    // older generation may begin before the main file's newest commit.
    guard journal.base <= header.commit, journal.generation < header.generation || journal.base == header.commit else {
      throw mismatch("the journal does not continue the main file")
    }
    // A main file that an older version of Larder has written has no journal tag to compare.
    guard let next = header.journal else { return }
    // Two copies of one store have equal generations. Only the random tag and the random salt in the headers show to which copy of a main
    // file a journal belongs.
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
  /// The commits that the journal adds to the main file, or `nil` without a journal.
  let replay: JSONFileReplay?
  /// Addresses (collection and key) of the tombstones in the main file, with the commits of the deletions.
  let tombstones: [RecordAddress: UInt64]

  /// Reads the main file and the journal, and passes every record to `visit` in its state at the newest commit.
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
        // Most stores open without changes in the journal, and then `isEmpty` saves hashing the address (collection and key) of each
        // tombstone.
        if changes.isEmpty || changes[record.address] == nil { visit(.record(record)) }
      }
    } begin: { header throws(RepositoryError) in
      guard let journal else { return [:] }
      // The journal is read before the lines of the main file, so that the reader can leave out records which the journal has changed.
      let found = try JSONFileReplay(journal, over: header, paths: paths, recovery: recovery)
      (replay, changes) = (found, found.changes)
      return changes
    }
    // The changes are grouped by collection, because a block of records in memory (a pack) holds records of one collection only. Sorting
    // the changes would take forty times as long as grouping their indices, and copying the records three times as long.
    for indices in Dictionary(grouping: changes.indices, by: { changes[$0].key.collection }).values {
      for index in indices { visit(.record(changes[index].value)) }
    }
    self.replay = replay
    self.tombstones = tombstones
  }

  /// The report of opening the store, to which recovery adds the changes that it makes to the files.
  var report: OpenReport {
    OpenReport(
      // After deletions on a full disk, the main file may be newer than its journal, so the newest commit is the larger of both commit
      // numbers.
      storeID: header.storeID, commit: Revision(max(header.commit, replay?.contents.lastCommit ?? 0)), isNew: false,
      replayedCommits: replay?.commitCount ?? 0, tombstoneHorizon: Revision(header.tombstonesSince))
  }
}
