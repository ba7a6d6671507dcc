internal import Foundation

/// Opens the files of a JSON store, whatever state a crash has left them in.
///
/// Nothing is decided on bytes that a crash could still take away: directory, snapshot and journal are synced before they are read.
/// Nothing is changed before everything was read and found good.
struct JSONFileRecovery {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning
  let options: StoreOptions

  /// Recovers or creates the store and hands over its records.
  func run(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> (JSONFileStore, OpenReport) {
    try fileSystem.createDirectory(paths.directory)
    let lock = try fileSystem.lock(paths.lock)
    do throws(RepositoryError) {
      try fileSystem.syncDirectory(paths.directory)
      guard let snapshot = try read(paths.snapshot) else { return try create(lock) }
      return try recover(snapshot, lock, visit)
    } catch {
      lock.release()
      throw error
    }
  }

  /// The bytes of a file, synced; `nil` when there is no such file.
  private func read(_ path: String) throws(RepositoryError) -> Data? {
    guard let file = try fileSystem.open(path, writable: false) else { return nil }
    try file.sync()
    let data = try file.read(at: 0, count: file.size())
    try file.close()
    return data
  }

  // MARK: Creating

  /// Creates the store: there is no main file, and nothing that a main file leaves behind.
  private func create(_ lock: any HeldLock) throws(RepositoryError) -> (JSONFileStore, OpenReport) {
    for path in [paths.journal, paths.previous] {
      guard try fileSystem.open(path, writable: false) != nil else { continue }
      throw RepositoryError(.dataMissing, "the main file is gone, but not what belongs to it: \(path)", file: paths.snapshot)
    }
    if let name = try (fileSystem.entries(of: paths.directory) ?? []).first(where: paths.isQuarantine) {
      throw RepositoryError(.dataMissing, "the main file is gone, but not what belongs to it: \(name)", file: paths.snapshot)
    }
    let removed = try removeTemporaryFiles()
    let header = SnapshotHeader(storeID: UUID(), generation: 1, commit: 0, tombstonesSince: 0)
    let temporary = JSONFilePaths.temporary(for: paths.snapshot)
    let file = try fileSystem.create(temporary)
    var writer = SnapshotWriter(file, header)
    let size = try writer.finish()
    try file.close()
    try fileSystem.rename(temporary, to: paths.snapshot)
    try fileSystem.syncDirectory(paths.directory)
    let store = JSONFileStore(
      paths: paths, fileSystem: fileSystem, tuning: tuning, options: options, lock: lock, header: header, snapshotSize: size,
      journal: nil, changes: [:], commit: 0)
    return (store, OpenReport(storeID: header.storeID, commit: .zero, isNew: true, removedTemporaryFiles: removed))
  }

  // MARK: Recovering

  private func recover(
    _ snapshot: Data, _ lock: any HeldLock, _ visit: (StoredRecord) -> Void
  ) throws(RepositoryError) -> (JSONFileStore, OpenReport) {
    let journalData = try read(paths.journal)
    let reader = SnapshotReader(data: snapshot, file: paths.snapshot, comparesChecksums: tuning.comparesChecksums)
    let header = try reader.readHeader()
    let replay = try journalData.map { data throws(RepositoryError) in try self.replay(data, over: header) }
    let changes = replay?.changes ?? [:]
    _ = try reader.read { line throws(RepositoryError) in
      if changes.isEmpty || changes[line.record.address] == nil { visit(line.record) }
    }
    for record in changes.values { visit(record) }

    // Everything is known to be good; from here on files may change.
    var cut: OpenReport.CutTail?
    var journal: JournalWriter?
    var removed: [String] = []
    if let journalData, let replay {
      cut = try keepTail(of: replay.contents, in: journalData)
      removed = try removeTemporaryFiles()
      if replay.isFolded {
        try fileSystem.remove(paths.journal)
        try fileSystem.syncDirectory(paths.directory)
      } else {
        journal = try renewJournal(replay.contents, from: journalData)
      }
    } else {
      removed = try removeTemporaryFiles()
    }
    let commit = max(header.commit, replay?.contents.lastCommit ?? 0)

    let store = JSONFileStore(
      paths: paths, fileSystem: fileSystem, tuning: tuning, options: options, lock: lock, header: header, snapshotSize: snapshot.count,
      journal: journal, changes: changes, commit: commit)
    let report = OpenReport(
      storeID: header.storeID, commit: Revision(commit), isNew: false,
      recordCount: 0, replayedCommits: replay?.commitCount ?? 0, cutTail: cut, removedTemporaryFiles: removed,
      tombstoneHorizon: Revision(header.tombstonesSince))
    return (store, report)
  }

  struct Replay {
    let contents: JournalReader.Contents
    let changes: [RecordAddress: StoredRecord]
    /// How many commits the snapshot did not have.
    let commitCount: Int
    /// Whether a newer snapshot has everything that the journal has, so that only the crash has left it here.
    let isFolded: Bool
  }

  /// Reads the journal and keeps what the snapshot does not have yet.
  func replay(_ data: Data, over header: SnapshotHeader) throws(RepositoryError) -> Replay {
    let reader = JournalReader(
      data: data, file: paths.journal, comparesChecksums: tuning.comparesChecksums, snapshotCommit: header.commit)
    var changes: [RecordAddress: StoredRecord] = [:]
    let contents = try reader.read { record throws(RepositoryError) in changes[record.address] = record }
    func mismatch(_ message: String) -> RepositoryError { RepositoryError(.corrupted, message, file: paths.journal, offset: 0) }
    guard contents.header.storeID == header.storeID else { throw mismatch("the journal belongs to another store") }
    guard contents.header.generation <= header.generation else {
      throw RepositoryError(
        .corrupted, "the main file is older than its journal; was it restored from a copy?", file: paths.snapshot, offset: 0)
    }
    guard contents.header.base <= header.commit, contents.header.generation < header.generation || contents.header.base == header.commit
    else { throw mismatch("the journal does not continue the main file") }
    if contents.tail != .clean, case .torn(_, isAmbiguous: true) = contents.tail, options.recovery == .strict {
      throw RepositoryError(
        .corrupted, "the last commit is damaged or was never finished", file: paths.journal, offset: UInt64(contents.end))
    }
    let commitCount = contents.lastCommit > header.commit ? Int(contents.lastCommit - header.commit) : 0
    return Replay(
      contents: contents, changes: changes, commitCount: commitCount,
      isFolded: contents.header.generation < header.generation && commitCount == 0)
  }

  /// Keeps a torn tail aside before it is cut.
  ///
  /// A full disk must not keep a store shut because of a write that was never finished; where something acknowledged may be among the
  /// bytes, it does.
  private func keepTail(of contents: JournalReader.Contents, in data: Data) throws(RepositoryError) -> OpenReport.CutTail? {
    guard case .torn(let end, let isAmbiguous) = contents.tail else { return nil }
    let start = contents.end
    var quarantine = paths.quarantine(generation: contents.header.generation, offset: start)
    do throws(RepositoryError) {
      try keepAside(data[(data.startIndex + start)..<(data.startIndex + end)], at: quarantine)
    } catch {
      guard error.code == .full, !isAmbiguous else { throw error }
      try fileSystem.remove(JSONFilePaths.temporary(for: quarantine))
      quarantine = ""
    }
    return .init(
      file: paths.journal, offset: UInt64(start), byteCount: end - start, quarantineFile: quarantine, isAmbiguous: isAmbiguous)
  }

  /// Writes bytes that are about to be cut to a file of their own, durably.
  private func keepAside(_ tail: Data, at path: String) throws(RepositoryError) {
    let temporary = JSONFilePaths.temporary(for: path)
    try fileSystem.remove(temporary)
    let copy = try fileSystem.create(temporary)
    try tail.lending { bytes throws(RepositoryError) in try copy.write(bytes, at: 0) }
    try copy.sync()
    try copy.close()
    try fileSystem.rename(temporary, to: path)
    try fileSystem.syncDirectory(paths.directory)
  }

  /// Copies the whole frames into a new journal, synced, in the place of the old one, and opens it.
  ///
  /// The old one is not appended to: if a sync of it has failed before, the system may hold bytes that no later sync writes. The tail is
  /// left behind in one step, so that a crash here finds it as it was.
  private func renewJournal(_ contents: JournalReader.Contents, from data: Data) throws(RepositoryError) -> JournalWriter {
    let temporary = JSONFilePaths.temporary(for: paths.journal)
    var bytes = Array(data.prefix(contents.end))
    let size = (contents.end + JournalFormat.terminatorSize + tuning.journalChunk - 1) / tuning.journalChunk * tuning.journalChunk
    bytes.append(contentsOf: repeatElement(0, count: size - bytes.count))
    do throws(RepositoryError) {
      try fileSystem.remove(temporary)
      let copy = try fileSystem.create(temporary)
      try bytes.lending { bytes throws(RepositoryError) in try copy.write(bytes, at: 0) }
      try copy.sync()
      try copy.close()
      try fileSystem.rename(temporary, to: paths.journal)
      try fileSystem.syncDirectory(paths.directory)
    } catch {
      // A full disk must not keep a store shut that has nothing to cut: it goes on with the journal that is there.
      guard error.code == .full else { throw error }
      try fileSystem.remove(temporary)
      try zeroTail(contents)
    }
    guard let file = try fileSystem.open(paths.journal, writable: true) else {
      throw RepositoryError(.dataMissing, "the journal is gone while it is recovered", file: paths.journal)
    }
    return try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk)
  }

  /// Overwrites a torn tail in place, which needs no space.
  private func zeroTail(_ contents: JournalReader.Contents) throws(RepositoryError) {
    guard case .torn(let end, _) = contents.tail else { return }
    guard let file = try fileSystem.open(paths.journal, writable: true) else {
      throw RepositoryError(.dataMissing, "the journal is gone while it is recovered", file: paths.journal)
    }
    let zeros = [UInt8](repeating: 0, count: end - contents.end)
    try zeros.lending { bytes throws(RepositoryError) in try file.write(bytes, at: contents.end) }
    try file.sync()
    try file.close()
  }

  private func removeTemporaryFiles() throws(RepositoryError) -> [String] {
    let names = try (fileSystem.entries(of: paths.directory) ?? []).filter(paths.isTemporary).sorted()
    for name in names { try fileSystem.remove(paths.directory + "/" + name) }
    if !names.isEmpty { try fileSystem.syncDirectory(paths.directory) }
    return names
  }
}
