internal import Foundation

/// The second step of opening a JSON store: makes the necessary writes once the store has accepted the records.
struct JSONFileRecovery {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning

  /// Creates a new store, or cuts and renews the journal of an existing one.
  ///
  /// If it throws, nothing is lost and the locks are still held.
  /// - Parameter report: The report of the first step, which this call completes.
  func run(_ found: JSONFileOpening.Found, _ report: inout OpenReport) throws(RepositoryError) -> JSONFileStore {
    guard var main = found.main else { return try create(found, &report) }
    // Another process may have replaced the files since they were read, so nothing may be written over them.
    try JSONFileStore.checkMainFile(main, at: paths.mainFile, fileSystem)
    var journal: JournalWriter?
    if let (data, replay) = found.journal.map({ ($0.data, $0.replay) }) {
      // The bytes must be durable elsewhere before the journal without them takes the place of this one.
      if let cut = report.cutTail, case .torn = replay.contents.tail { report.cutTail = try keepAside(cut, of: data, main) }
      report.removedTemporaryFiles = try removeTemporaryFiles()
      if replay.isBehind {
        main = try renewMain(main, folding: replay.contents.header.salt, found.options)
        // Only after the new main file is durable: a power cut could bring back the previous main file, which needs this journal.
        try fileSystem.remove(paths.journal)
        try fileSystem.syncDirectory(paths.directory)
      } else {
        journal = try renewJournal(replay.contents, from: data, main)
      }
    } else {
      report.removedTemporaryFiles = try removeTemporaryFiles()
      // If a new store's directory could not be synced, removing the store may have failed too.
      let isUnused = main.header.generation == 1 && main.header.commit == 0
      if isUnused || main.header.folded == MainFileHeader.noJournal {
        main = try renewMain(main, folding: MainFileHeader.noJournal, found.options)
      }
    }
    // Last, since nothing can fail any more: an opening that fails after it would never report the cut.
    if let cut = report.cutTail { report.cutTail?.settleQuarantine(from: JSONFilePaths.unreported(cut), in: fileSystem) }
    let store = JSONFileStore(
      self, found.options, found.lock, main, journal: journal, changes: found.journal?.replay.changes ?? [:], commit: report.commit.number)
    // The name of a main file newer than its journal may be undurable after a failed sync, and a second sync proves nothing. The journal
    // continues the previous main file too, so it stays until the next main file is durable.
    if let journal, journal.header.generation < main.header.generation { store.isMainDurable = false }
    return store
  }

  /// Writes the main file again, durably, because no journal could restore it, or because its journal is about to be removed.
  ///
  /// A failed sync may have left its name undurable, and a later sync proves nothing about that name: a power cut could bring the previous
  /// file back. The new file gets a rename and a sync of its own. If that fails, the next opening finds the same state as this one. If a
  /// full disk has no room for it, the old file stays.
  /// - Parameter salt: The salt of the journal that is about to be removed.
  private func renewMain(_ main: MainFile, folding salt: UInt32, _ options: StoreOptions) throws(RepositoryError) -> MainFile {
    // A rewrite is no checkpoint: it must neither replace the kept generation nor drop tombstones.
    var options = options
    options.keepsPreviousSnapshot = false
    options.limits.tombstones = .max
    let draft = MainFileDraft(
      paths: paths, fileSystem: fileSystem, main: main, changes: [:], commit: main.header.commit, journalSalt: salt, options: options)
    let next: MainFile
    do throws(RepositoryError) {
      next = try draft.write()
      do throws(RepositoryError) {
        try draft.replacement.rename()
      } catch {
        draft.replacement.discard(next.file)
        throw error
      }
    } catch {
      // No acknowledged commit depends on the new file, so a full disk does not keep the store shut.
      guard error.code == .full else { throw error }
      return main
    }
    try fileSystem.syncDirectory(paths.directory)
    return next
  }

  private func create(_ found: JSONFileOpening.Found, _ report: inout OpenReport) throws(RepositoryError) -> JSONFileStore {
    report.removedTemporaryFiles = try removeTemporaryFiles()
    let header = MainFileHeader(
      storeID: report.storeID, generation: 1, commit: 0, tombstonesSince: 0, journal: MainFileHeader.newTag())
    let replacement = FileReplacement(path: paths.mainFile, fileSystem: fileSystem)
    let file = try replacement.write(like: nil) { file throws(RepositoryError) in
      var writer = MainFileWriter(file, header)
      try writer.finish()
      try file.lock()
      // `rename` would replace the other store with an empty one.
      guard try fileSystem.status(of: paths.mainFile) == nil else {
        throw RepositoryError(.locked, "another process has created the store meanwhile", file: paths.mainFile)
      }
      return file
    }
    let main = try MainFile(file, header, tombstones: [:])
    try replacement.rename()
    do throws(RepositoryError) {
      try fileSystem.syncDirectory(paths.directory)
    } catch {
      // A second sync would prove nothing about the name, so the empty file is removed, and the next attempt creates another.
      do throws(RepositoryError) { try fileSystem.remove(paths.mainFile) } catch {}
      throw error
    }
    return JSONFileStore(self, found.options, found.lock, main, journal: nil, changes: [:], commit: 0)
  }

  /// Writes a torn tail to a quarantine file, durably, under a name which says that the cut has not been reported yet.
  ///
  /// If the disk is full, a tail that was certainly never acknowledged is dropped, so that the store opens. An ambiguous tail, which may
  /// hold an acknowledged commit, keeps the store shut.
  private func keepAside(_ cut: OpenReport.CutTail, of data: Data, _ main: MainFile) throws(RepositoryError) -> OpenReport.CutTail {
    let start = data.startIndex + Int(cut.offset)
    let tail = data[start..<(start + cut.byteCount)]
    let replacement = FileReplacement(path: cut.quarantineFile, fileSystem: fileSystem, requiresAttributes: false)
    do throws(RepositoryError) {
      try replacement.write(like: main) { copy throws(RepositoryError) in
        try tail.lending { bytes throws(RepositoryError) in try copy.write(bytes, at: 0) }
        try copy.sync()
        try copy.close()
        // Renamed only when it is complete: the next opening reports the cut from this name and the file's size.
        try fileSystem.rename(replacement.temporary, to: JSONFilePaths.unreported(cut))
      }
      try fileSystem.syncDirectory(paths.directory)
      return cut
    } catch {
      guard error.code == .full, !cut.isAmbiguous else { throw error }
      var lost = cut
      lost.quarantineFile = ""
      return lost
    }
  }

  /// Copies the whole frames into a new journal, synced, and renames it over the old one.
  ///
  /// The old journal is not appended to: after a failed sync the system may hold bytes that no later sync writes. One rename cuts the tail,
  /// so that a crash before it finds the journal as it was.
  func renewJournal(_ contents: JournalReader.Contents, from data: Data, _ main: MainFile) throws(RepositoryError)
    -> JournalWriter
  {
    // A device may refuse the protection class for good, and that must not keep the store shut. The next checkpoint creates a journal with
    // the class, or fails.
    let replacement = FileReplacement(path: paths.journal, fileSystem: fileSystem, requiresAttributes: false)
    var bytes = data.prefix(contents.end)
    // A frame is only written into allocated space, with a terminator of zero bytes behind it.
    let size = (contents.end + JournalFormat.terminatorSize + tuning.journalChunk - 1) / tuning.journalChunk * tuning.journalChunk
    bytes.append(Data(count: size - bytes.count))
    var isRenamed = false
    do throws(RepositoryError) {
      let copy = try replacement.write(like: main) { copy throws(RepositoryError) in
        try bytes.lending { bytes throws(RepositoryError) in try copy.write(bytes, at: 0) }
        try copy.sync()
        return copy
      }
      try replacement.rename()
      isRenamed = true
      try fileSystem.syncDirectory(paths.directory)
      return try JournalWriter(
        continuing: copy, contents, chunk: tuning.journalChunk, name: paths.journal, growingIn: fileSystem)
    } catch {
      // On a full disk the store goes on with the old journal. After the rename it must not: a power cut could bring the old one back,
      // without the frames appended to the new one.
      guard error.code == .full, !isRenamed else { throw error }
      replacement.discard()
      return try continueJournal(contents, data)
    }
  }

  /// Continues the existing journal, for which a full disk needs no more space.
  ///
  /// Writes the frames over themselves, since after a failed sync they may be in the page cache only, and for the same reason zero bytes
  /// over the rest. If the rest has no space on the disk, because the space for a large frame was left out, it is cut.
  private func continueJournal(_ contents: JournalReader.Contents, _ data: Data) throws(RepositoryError) -> JournalWriter {
    guard let file = try fileSystem.open(paths.journal, writable: true) else {
      throw RepositoryError(.dataMissing, "the journal is gone while it is recovered", file: paths.journal)
    }
    let frames = data.prefix(contents.end)
    do throws(RepositoryError) {
      try overwrite(file, with: frames, zerosTo: data.count)
    } catch {
      guard error.code == .full else { throw error }
      try giveBack(file, contents, frames, of: data.count, after: error)
    }
    // The frames are acknowledged, and nothing may be appended before they are durable.
    try file.sync()
    return try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk, growingIn: fileSystem)
  }

  /// Overwrites a journal whose rest has no disk space, and cuts the rest, except for the reserve for deletions if that has space.
  private func giveBack(
    _ file: any OpenFile, _ contents: JournalReader.Contents, _ frames: Data, of count: Int, after cause: RepositoryError
  ) throws(RepositoryError) {
    if case .torn = contents.tail {
      // The start of a torn frame is zeroed first and synced: readers treat a file that ends within a frame as damaged, not as torn.
      let zeros = [UInt8](repeating: 0, count: JournalFormat.terminatorSize)
      try zeros.lending { bytes throws(RepositoryError) in try file.write(bytes, at: contents.end) }
      try file.sync()
    }
    let (needed, chunk) = (contents.end + JournalFormat.terminatorSize, tuning.journalChunk)
    // First with the reserve of a quarter of a chunk, then with the least that a reader accepts.
    for size in [(needed + chunk / 4 + chunk - 1) / chunk * chunk, (needed + 4095) / 4096 * 4096] where size <= count {
      try file.cut(to: size)
      // A file system that cannot cut leaves the size, and then nothing is gained.
      guard try file.size() == size else { break }
      do throws(RepositoryError) { return try overwrite(file, with: frames, zerosTo: size) } catch {
        guard error.code == .full else { throw error }
      }
    }
    throw cause
  }

  private func overwrite(_ file: any OpenFile, with frames: Data, zerosTo size: Int) throws(RepositoryError) {
    let bytes = frames + Data(count: size - frames.count)
    try bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: 0) }
  }

  private func removeTemporaryFiles() throws(RepositoryError) -> [String] {
    let names = try paths.temporaryFiles(in: fileSystem)
    for name in names { try fileSystem.remove(paths.path(of: name)) }
    if !names.isEmpty { try fileSystem.syncDirectory(paths.directory) }
    return names
  }
}
