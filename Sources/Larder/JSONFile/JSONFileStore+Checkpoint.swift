internal import Foundation

extension JSONFileStore {
  /// Whether the journal is larger than the snapshot, so that folding it costs no more than it has cost to write it.
  var wantsCheckpoint: Bool {
    guard let journal, !isPoisoned else { return false }
    return journal.end > max(4 << 20, main.size)
  }

  /// Whether folding the journal is worth what it rewrites: at most eight times the bytes in the journal, or a small file; or the oldest of the
  /// changes has waited for a day.
  ///
  /// So one lone save does not rewrite a large file, and what is written in all is at most ten times what was saved.
  var isCheckpointWorthwhile: Bool {
    guard !isPoisoned else { return false }
    guard let journal, commit > main.header.commit else { return !isMainDurable || journal != nil }
    let isOld = oldestChange.map { ContinuousClock.now - $0 >= .seconds(86_400) } ?? false
    return main.size <= max(tuning.smallFile, journal.end * 8) || isOld
  }

  /// Folds the journal into a new snapshot and begins a new journal.
  ///
  /// The states on the way, each of which recovers to the same records: the old pair; with a temporary snapshot beside it; the new snapshot
  /// with the old journal, whose commits it has all; with a temporary journal beside it; the new pair.
  func checkpoint() throws(RepositoryError) {
    try checkHealth()
    try checkFiles()
    guard commit > main.header.commit || !isMainDurable else { return }
    try replaceMain()
    try createJournal()
  }

  /// The snapshot with all changes.
  func fold() -> SnapshotFold {
    SnapshotFold(
      main, changes: changes, commit: commit, tombstoneLimit: options.limits.tombstones, path: paths.snapshot,
      comparesChecksums: tuning.comparesChecksums)
  }

  /// Puts a snapshot of everything in the place of the old one, durably.
  ///
  /// The old journal stays, and adds nothing to it.
  func replaceMain() throws(RepositoryError) {
    let fold = fold()
    var header = fold.header
    guard header.generation + 1 < .max else {
      throw RepositoryError(.unsupported, "the store has had as many generations as there can be", file: paths.snapshot)
    }
    header.generation += 1
    (header.folded, header.journal) = (journal?.header.salt, SnapshotHeader.newTag())
    if options.keepsPreviousSnapshot { try keepPreviousSnapshot() }
    let temporary = JSONFilePaths.temporary(for: paths.snapshot)
    try fileSystem.remove(temporary)
    let next = try write(fold, header, to: temporary) { file throws(RepositoryError) in
      try file.lock()
      let next = try MainFile(file, header, tombstones: fold.tombstones)
      try fileSystem.rename(temporary, to: paths.snapshot)
      return next
    }
    let old = main
    main = next
    changes = [:]
    oldestChange = nil
    isMainDurable = false
    // A failure says nothing about what was in the file; it is closed when it is released, at the latest.
    do throws(RepositoryError) { try old.file.close() } catch {}
    try fileSystem.syncDirectory(paths.directory)
    isMainDurable = true
  }

  /// Writes a snapshot under a name that nothing has yet, as its owner and with the mode of the old one, and lets it be put into place.
  ///
  /// The file is removed again when that fails.
  func write<Result>(
    _ fold: SnapshotFold, _ header: SnapshotHeader, to temporary: String,
    _ place: (any OpenFile) throws(RepositoryError) -> Result
  ) throws(RepositoryError) -> Result {
    let file = try fileSystem.create(temporary)
    do throws(RepositoryError) {
      try file.setMode(main.mode)
      if let owner = main.owner { try file.setOwner(owner) }
      var writer = SnapshotWriter(file, header)
      try fold.write(to: &writer)
      try writer.finish()
      return try place(file)
    } catch {
      // The failure is what the caller must hear of; a temporary file that stays is removed by the next open.
      do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
      throw error
    }
  }

  private func keepPreviousSnapshot() throws(RepositoryError) {
    let temporary = JSONFilePaths.temporary(for: paths.previous)
    try fileSystem.remove(temporary)
    let file = try fileSystem.create(temporary)
    if let owner = main.owner { try file.setOwner(owner) }
    var offset = 0
    while offset < main.size {
      let piece = try main.file.read(at: offset, count: 1 << 20)
      guard !piece.isEmpty else {
        throw RepositoryError(.corrupted, "the main file was cut while its store is open", file: paths.snapshot, offset: UInt64(offset))
      }
      try piece.lending { bytes throws(RepositoryError) in try file.write(bytes, at: offset) }
      offset += piece.count
    }
    try file.sync()
    try file.close()
    try fileSystem.rename(temporary, to: paths.previous)
  }

  /// Makes an empty journal for the snapshot that is in place, and puts it in the place of the old one, which has nothing of its own.
  ///
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable`; the store goes on with the old journal if that has kept its name, else the
  ///   next commit makes another.
  func createJournal() throws(RepositoryError) {
    let temporary = JSONFilePaths.temporary(for: paths.journal)
    let header = JournalHeader(
      storeID: main.header.storeID, generation: main.header.generation, base: main.header.commit,
      salt: .random(in: .min ... .max), tag: main.header.journal ?? 0)
    try fileSystem.remove(temporary)
    let file = try fileSystem.create(temporary)
    let new: JournalWriter
    do throws(RepositoryError) {
      if let owner = main.owner { try file.setOwner(owner) }
      let contents = try JournalWriter.create(file, header, chunk: tuning.journalChunk)
      // The file stays open while it is renamed: it could not be opened again where there are no descriptors left.
      new = try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk, name: paths.journal)
      try fileSystem.rename(temporary, to: paths.journal)
    } catch {
      // The failure is what the caller must hear of; a temporary file that stays is removed by the next open.
      do throws(RepositoryError) { try fileSystem.remove(temporary) } catch {}
      throw error
    }
    let old = journal
    (journal, unusedJournal) = (nil, new.identity)
    do throws(RepositoryError) { try old?.close() } catch {}  // what was in it is in the snapshot
    try fileSystem.syncDirectory(paths.directory)
    (journal, unusedJournal) = (new, nil)
  }
}
