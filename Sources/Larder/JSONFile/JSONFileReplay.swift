internal import Foundation

/// The commits that a journal adds to the main file that it continues.
struct JSONFileReplay: Sendable {
  let contents: JournalReader.Contents
  /// The newest record or tombstone of every address that the main file does not have.
  let changes: [RecordAddress: StoredRecord]
  /// The number of commits that the main file did not have.
  let commitCount: Int
  /// Whether nothing can be appended, since the main file has commits that the journal lacks, or names no journal: a full disk was cleared,
  /// or a journal came back whose removal was never synced.
  let isBehind: Bool

  /// Reads the journal and keeps what the main file does not have yet.
  /// - Parameter start: Where to begin, if what comes before is known.
  /// - Throws: `.corrupted` for a journal that is damaged or not that main file's; `.newerSchema`.
  init(
    _ data: Data, over header: MainFileHeader, paths: JSONFilePaths, recovery: StoreOptions.Recovery,
    from start: JournalReader.Position? = nil
  ) throws(RepositoryError) {
    let reader = JournalReader(data: data, file: paths.journal, mainFileCommit: header.commit, start: start)
    var changes: [RecordAddress: StoredRecord] = [:]
    let contents = try reader.read { record throws(RepositoryError) in changes[record.address] = record }
    try Self.check(contents, continues: header, paths)
    if contents.tail != .clean, recovery == .strict {
      throw RepositoryError(
        .corrupted, "the last commit is damaged or was never finished", file: paths.journal, offset: UInt64(contents.end))
    }
    self.contents = contents
    self.changes = changes
    commitCount = contents.lastCommit > header.commit ? Int(clamping: contents.lastCommit - header.commit) : 0
    isBehind = contents.lastCommit < header.commit || Self.isLeftover(contents, of: header)
  }

  /// Whether a journal is an older one that adds nothing to a main file that was put in place without one.
  private static func isLeftover(_ contents: JournalReader.Contents, of header: MainFileHeader) -> Bool {
    header.folded == MainFileHeader.noJournal && contents.header.generation < header.generation && contents.lastCommit <= header.commit
  }

  /// Refuses a journal that the main file did not name: one of the two is a copy, or comes from another time.
  private static func check(
    _ contents: JournalReader.Contents, continues header: MainFileHeader, _ paths: JSONFilePaths
  ) throws(RepositoryError) {
    let journal = contents.header
    func mismatch(_ message: String, _ file: String? = nil) -> RepositoryError {
      RepositoryError(.corrupted, message, file: file ?? paths.journal, offset: 0)
    }
    guard journal.storeID == header.storeID else { throw mismatch("the journal belongs to another store") }
    guard journal.generation <= header.generation else {
      throw mismatch("the main file is older than its journal; was it restored from a copy?", paths.mainFile)
    }
    guard journal.base <= header.commit, journal.generation < header.generation || journal.base == header.commit else {
      throw mismatch("the journal does not continue the main file")
    }
    // A main file that names no journal to come was written by an older version, which named none at all.
    guard let next = header.journal else { return }
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
  /// The changes that the journal adds; `nil` without one.
  let replay: JSONFileReplay?
  /// The tombstones in the main file, and the commits of their deletions.
  let tombstones: [RecordAddress: UInt64]

  /// Reads both, and hands over everything as it is at the newest commit.
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
        if changes.isEmpty || changes[record.address] == nil { visit(.record(record)) }
      }
    } begin: { header throws(RepositoryError) in
      guard let journal else { return [:] }
      let found = try JSONFileReplay(journal, over: header, paths: paths, recovery: recovery)
      (replay, changes) = (found, found.changes)
      return changes
    }
    // A change of another collection than the last one ends a pack. Sorting takes forty times as long; copies of the records, three times.
    for indices in Dictionary(grouping: changes.indices, by: { changes[$0].key.collection }).values {
      for index in indices { visit(.record(changes[index].value)) }
    }
    self.replay = replay
    self.tombstones = tombstones
  }

  /// The findings, without what recovery would change.
  var report: OpenReport {
    OpenReport(
      storeID: header.storeID, commit: Revision(max(header.commit, replay?.contents.lastCommit ?? 0)), isNew: false,
      replayedCommits: replay?.commitCount ?? 0, tombstoneHorizon: Revision(header.tombstonesSince))
  }
}
