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
  /// The changes after the newest slot that is known, or `nil` if no slots were given.
  let uncounted: UncountedChanges?

  /// Reads a journal and collects the changes that the main file does not have yet.
  ///
  /// - Parameters:
  ///   - start: Position in the journal behind the frames that the store has already read, or `nil` to read all frames.
  ///   - slots: Readable slots of the index file, the newest first, or `nil` if nobody needs the store's counts.
  /// - Throws: `.corrupted` for a journal that is damaged or does not belong to the main file, `.newerSchema`.
  init(
    _ data: Data, over header: MainFileHeader, paths: JSONFilePaths, recovery: StoreOptions.Recovery,
    from start: JournalReader.Position? = nil, slots: IndexFile.Stored.Slots? = nil
  ) throws(RepositoryError) {
    let reader = JournalReader(data: data, file: paths.journal, mainFileCommit: header.commit, start: start)
    var changes: [RecordAddress: StoredRecord] = [:]
    let salt: UInt32 = data.count < JournalFormat.headerSize ? 0 : data.withUnsafeBytes { $0.number(at: 12) }
    var uncounted = slots.map { UncountedChanges($0, salt: salt) }
    let contents = try reader.read { (record) throws(RepositoryError) in
      let old = changes.updateValue(record, forKey: record.address)
      uncounted?.note(record.address, after: old)
    } begin: { frame, offset in
      uncounted?.begin(frame, at: offset, in: data)
    }
    uncounted?.endFrame()
    self.uncounted = uncounted
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

  /// Reads a journal, and collects the changes after the newest slot that the journal has.
  ///
  /// - Throws: The errors of reading a journal.
  static func counting(
    _ journal: Data, over header: MainFileHeader, paths: JSONFilePaths, recovery: StoreOptions.Recovery, _ slots: IndexFile.Stored.Slots
  ) throws(RepositoryError) -> JSONFileReplay {
    let replay = try JSONFileReplay(journal, over: header, paths: paths, recovery: recovery, slots: slots)
    guard let uncounted = replay.uncounted, uncounted.isIncomplete else { return replay }
    // A power cut may lose commits of which the index file has a slot.
    var older = slots
    older.known.removeAll { $0.commit == slots.known.map(\.commit).max() }
    return try counting(journal, over: header, paths: paths, recovery: recovery, older)
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

/// The records that a journal has changed after the newest commit of which the index file has a slot.
struct UncountedChanges: Sendable {
  /// State of a record before the first of its uncounted changes.
  enum Before: Sendable {
    case present(StoredRecord)
    case absent
    /// Only the main file shows whether it has the record.
    case asInMainFile

    /// Returns the record, or `nil` if there was none.
    func record(
      at address: RecordAddress, in main: PagedMainFile, last: inout PagedMainFile.Block?
    ) throws(RepositoryError) -> StoredRecord? {
      switch self {
      case .present(let record): record
      case .absent: nil
      case .asInMainFile: try main.record(at: address, last: &last)
      }
    }
  }

  private let known: [IndexFileSlots.Slot]
  /// Commit of the newest known slot, up to which changes are not noted.
  private let newest: UInt64
  /// Newest commit of the frame that is being read.
  private var commit: UInt64 = 0
  /// The slot of the frame that is being read, until the frame ends.
  private var reached: IndexFileSlots.Slot?
  /// The newest slot whose frame the journal has, or the one of the main file, or `nil` if there is none.
  private(set) var slot: IndexFileSlots.Slot?
  /// The addresses of the changes after ``slot``.
  private(set) var changes: [RecordAddress: Before] = [:]
  /// Hash of the frames that were read.
  private(set) var sum: JournalSum

  init(_ slots: IndexFile.Stored.Slots, salt: UInt32) {
    (known, slot) = (slots.known, slots.ofMainFile)
    sum = JournalSum(salt: salt)
    newest = known.map(\.commit).max() ?? 0
  }

  /// True if the newest known slot is of no frame of the journal, so that the journal must be read again with older slots.
  var isIncomplete: Bool { newest > slot?.commit ?? 0 }

  mutating func begin(_ frame: JournalFrame, at offset: Int, in journal: Data) {
    endFrame()
    commit = frame.commits.upperBound
    let (head, trailer) = journal.withUnsafeBytes { bytes in
      (
        bytes.number(at: offset + JournalFormat.frameHeaderSize - 4) as UInt32,
        bytes.number(at: offset + frame.size - JournalFormat.frameTrailerSize) as UInt32
      )
    }
    sum.add(head, trailer, size: frame.size)
    // Before a power cut, another commit may have had the number, also behind other commits, so all frames up to here must be the same.
    reached = known.first { $0.commit == commit && $0.journal == sum.hash.value }
  }

  mutating func note(_ address: RecordAddress, after old: StoredRecord?) {
    guard commit > newest, changes[address] == nil else { return }
    changes[address] = old.map { $0.value == nil ? .absent : .present($0) } ?? .asInMainFile
  }

  mutating func endFrame() {
    guard let reached else { return }
    (slot, self.reached, changes) = (reached, nil, [:])
  }
}

/// A hash of the first frames of a journal, made of the checksums of their heads and payloads.
///
/// The hash is the one of a main file's seal, FNV-1a. A CRC32C over bytes and their own CRC32C would be the same for all bytes of one
/// length.
struct JournalSum: Sendable {
  /// Salt of the journal, which no other journal of the store has.
  let salt: UInt32
  /// Offset behind the last frame of the hash.
  private(set) var end = JournalFormat.headerSize
  private(set) var hash = SealHash()

  init(salt: UInt32) { self.salt = salt }

  /// Adds the next frame.
  mutating func add(_ headChecksum: UInt32, _ payloadChecksum: UInt32, size: Int) {
    hash.add(headChecksum)
    hash.add(payloadChecksum)
    end += size
  }

  /// Adds the frames up to an offset, of which the heads and the checksums are read.
  ///
  /// - Throws: `.corrupted` if the frames do not end at the offset.
  mutating func addFrames(of file: any OpenFile, before limit: Int) throws(RepositoryError) {
    while end < limit {
      let head = try file.read(at: end, count: JournalFormat.frameHeaderSize)
      guard head.count == JournalFormat.frameHeaderSize else { throw ended(file) }
      let (size, checksum) = head.withUnsafeBytes {
        ($0.count(at: 4) + JournalFormat.frameHeaderSize + JournalFormat.frameTrailerSize, $0.number(at: head.count - 4) as UInt32)
      }
      let trailer = try file.read(at: end + size - JournalFormat.frameTrailerSize, count: JournalFormat.frameTrailerSize)
      guard size <= limit - end, trailer.count == JournalFormat.frameTrailerSize else { throw ended(file) }
      add(checksum, trailer.withUnsafeBytes { $0.number(at: 0) }, size: size)
    }
  }

  private func ended(_ file: any OpenFile) -> RepositoryError {
    RepositoryError(.corrupted, "expected a whole commit, found the end of the journal", file: file.path, offset: UInt64(end))
  }
}

/// The contents of a store's main file and journal together.
struct JSONFileContents {
  let header: MainFileHeader
  /// The commits that the journal adds to the main file, or `nil` without a journal.
  let replay: JSONFileReplay?
  /// Addresses (collection and key) of the tombstones in the main file, with the commits of the deletions.
  let tombstones: [RecordAddress: UInt64]

  init(_ header: MainFileHeader, _ replay: JSONFileReplay?, tombstones: [RecordAddress: UInt64]) {
    (self.header, self.replay, self.tombstones) = (header, replay, tombstones)
  }

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
