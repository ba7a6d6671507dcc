internal import Foundation

/// The second step of opening a JSON store: makes the necessary writes once the store has accepted the records.
struct JSONFileRecovery {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning

  /// Creates a new store, or cuts and renews the journal of an existing one.
  ///
  /// If the call throws, no acknowledged commit is lost, and the locks are still held.
  /// - Parameter report: The report of the first step, which this call completes.
  func run(_ found: JSONFileOpening.Found, _ report: inout OpenReport) throws(RepositoryError) -> JSONFileStore {
    guard var main = found.main else { return try create(found, &report) }
    // Another process may have replaced the files since they were read, and recovery must not write over files that it has not read.
    try JSONFileStore.checkMainFile(main, at: paths.mainFile, fileSystem)
    var journal: JournalWriter?
    if let (data, replay) = found.journal.map({ ($0.data, $0.replay) }) {
      // The torn bytes must be durable in a quarantine file before `renewJournal` replaces the journal by one without them.
      if let cut = report.cutTail, case .torn = replay.contents.tail { report.cutTail = try keepAside(cut, of: data, main) }
      report.removedTemporaryFiles = try removeTemporaryFiles()
      if replay.isBehind {
        main = try renewMain(main, folding: replay.contents.header.salt, found.options)
        // The journal is removed after `renewMain` and not before it, because a power cut could bring back the previous main file. The
        // previous main file needs this journal.
        try fileSystem.remove(paths.journal)
        try fileSystem.syncDirectory(paths.directory)
      } else {
        journal = try renewJournal(replay.contents, from: data, main)
      }
    } else {
      report.removedTemporaryFiles = try removeTemporaryFiles()
      // `create` removes a new main file whose directory could not be synced. If the removal has failed too, the name of the main file may
      // not be durable, so the main file is written again.
      let isUnused = main.header.generation == 1 && main.header.commit == 0
      if isUnused || main.header.folded == MainFileHeader.noJournal {
        main = try renewMain(main, folding: MainFileHeader.noJournal, found.options)
      }
    }
    // The quarantine file gets its final name last, when no later step can throw. If an opening failed after the quarantine file has its
    // final name, no opening would report the cut.
    if let cut = report.cutTail { report.cutTail?.settleQuarantine(from: JSONFilePaths.unreported(cut), in: fileSystem) }
    let store = JSONFileStore(
      self, options: found.options, lock: found.lock, main: main, journal: journal, changes: found.journal?.replay.changes ?? [:],
      commit: report.commit.number)
    // A main file newer than its journal was left by an unfinished checkpoint. A failed sync of the directory may have left that main
    // file's name undurable, and a second sync proves nothing. The journal continues the previous main file too, so the journal stays until
    // the next main file is durable.
    if let journal, journal.header.generation < main.header.generation { store.isMainDurable = false }
    return store
  }

  /// Writes the main file again, durably, because no journal could restore its records or because its journal is about to be removed.
  ///
  /// A failed sync of the directory may have left the main file's name undurable, and a later sync proves nothing about that name. A power
  /// cut could then bring the previous main file back. The main file that this function writes gets a rename and a sync of its own. If that
  /// sync fails, the next opening finds the same state as this one. If a full disk has no room for the new file, the old file stays.
  /// - Parameter salt: The salt of the journal that is about to be removed.
  private func renewMain(_ main: MainFile, folding salt: UInt32, _ options: StoreOptions) throws(RepositoryError) -> MainFile {
    // This rewrite is no checkpoint, so it must neither replace the kept previous main file nor drop tombstones.
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
      // The new file adds no commit to the old one, so a full disk does not keep the store from opening.
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
      // If another process has created the store meanwhile, `rename` would replace that store with an empty one.
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
      // After a failed sync, a second sync would prove nothing about the new name. The empty main file is removed, and the next opening
      // creates another.
      do throws(RepositoryError) { try fileSystem.remove(paths.mainFile) } catch {}
      throw error
    }
    return JSONFileStore(self, options: found.options, lock: found.lock, main: main, journal: nil, changes: [:], commit: 0)
  }

  /// Writes a torn tail to a quarantine file, durably, under a name that marks the cut as not yet reported.
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
        // The copy is renamed only when it is complete, because the next opening reports the cut from this name and the file's size.
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

  /// Copies the complete frames of a journal into a new, synced journal, and renames the new journal over the old one.
  ///
  /// Nothing is appended to the old journal, because after a failed sync its bytes may be in the page cache only and no later sync writes
  /// them. The rename cuts a torn tail in one step, so a crash before the rename leaves the journal as it was.
  func renewJournal(_ contents: JournalReader.Contents, from data: Data, _ main: MainFile) throws(RepositoryError)
    -> JournalWriter
  {
    // A device may refuse the protection class permanently, and recovery must still open the store. The next checkpoint creates a journal
    // with the protection class, or fails.
    let replacement = FileReplacement(path: paths.journal, fileSystem: fileSystem, requiresAttributes: false)
    var bytes = data.prefix(contents.end)
    // A commit writes its frame only into allocated space, with zero bytes behind the frame. The new journal is filled up with zero bytes,
    // which are that space.
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
      // On a full disk the store goes on with the old journal. After the rename the error is thrown instead, because a power cut could
      // bring the old journal back without the frames appended to the new one.
      guard error.code == .full, !isRenamed else { throw error }
      replacement.discard()
      return try continueJournal(contents, data)
    }
  }

  /// Continues to use the existing journal file, when a full disk has no room for a copy of it.
  ///
  /// Writes the frames over themselves and zero bytes over the rest, because after a failed sync the file's bytes may be in the page cache
  /// only. If the rest has no space on the disk, because the space for a large frame was never allocated, the rest is cut.
  private func continueJournal(_ contents: JournalReader.Contents, _ data: Data) throws(RepositoryError) -> JournalWriter {
    guard let file = try fileSystem.open(paths.journal, writable: true) else {
      throw RepositoryError(.dataMissing, "the journal is gone while it is recovered", file: paths.journal)
    }
    let frames = data.prefix(contents.end)
    do throws(RepositoryError) {
      try overwrite(file, with: frames, zerosTo: data.count)
    } catch {
      guard error.code == .full else { throw error }
      try giveBack(file, contents, frames: frames, of: data.count, after: error)
    }
    // The frames hold acknowledged commits, and no commit may be appended before these frames are durable.
    try file.sync()
    return try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk, growingIn: fileSystem)
  }

  /// Cuts the end of a journal for which the disk has no space, down to the reserve for deletions or less, and overwrites the remainder.
  private func giveBack(
    _ file: any OpenFile, _ contents: JournalReader.Contents, frames: Data, of count: Int, after cause: RepositoryError
  ) throws(RepositoryError) {
    if case .torn = contents.tail {
      // The start of a torn frame is zeroed and synced before the cut, because readers treat a file that ends within a frame as damaged,
      // not as torn.
      let zeros = [UInt8](repeating: 0, count: JournalFormat.terminatorSize)
      try zeros.lending { bytes throws(RepositoryError) in try file.write(bytes, at: contents.end) }
      try file.sync()
    }
    let (needed, chunk) = (contents.end + JournalFormat.terminatorSize, tuning.journalChunk)
    // The first size includes the reserve for deletions (a quarter of a chunk). The second size is the least that a reader accepts, in
    // whole blocks.
    for size in [(needed + chunk / 4 + chunk - 1) / chunk * chunk, (needed + 4095) / 4096 * 4096] where size <= count {
      try file.cut(to: size)
      // On a file system that cannot shorten a file, the cut leaves the size unchanged and gains no space.
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
