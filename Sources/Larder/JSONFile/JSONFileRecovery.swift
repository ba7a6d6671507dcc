internal import Foundation

/// The second step of opening a JSON store, which writes to the store's files after the store has accepted the records.
struct JSONFileRecovery {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning

  /// Creates a new store, or cuts and renews the journal of an existing store.
  ///
  /// If the call throws, no acknowledged commit is lost, and the locks are still held.
  /// - Parameter report: The report of `JSONFileOpening`, the first step of opening a store. `run(_:_:)` completes the report.
  func run(_ found: JSONFileOpening.Found, _ report: inout OpenReport) throws(RepositoryError) -> JSONFileStore {
    guard var main = found.main else { return try create(found, &report) }
    do throws(RepositoryError) {
      return try recover(&main, found, &report)
    } catch {
      // The index of a main file that was written again has its name only once the store uses it.
      main.newIndex?.file?.discard(paths: paths, in: fileSystem)
      throw error
    }
  }

  private func recover(
    _ main: inout MainFile, _ found: JSONFileOpening.Found, _ report: inout OpenReport
  ) throws(RepositoryError) -> JSONFileStore {
    // Another process may have replaced the files since they were read, and recovery must not overwrite files that were not read.
    try JSONFileStore.checkMainFile(main, at: paths.mainFile, fileSystem)
    var journal: JournalWriter?
    if let (data, replay) = found.journal.map({ ($0.data, $0.replay) }) {
      // The bytes of an unfinished write must be durable in a quarantine file before `renewJournal` replaces the journal by one without
      // these bytes.
      if let cut = report.cutTail, case .torn = replay.contents.tail { report.cutTail = try keepAside(cut, of: data, main) }
      report.removedTemporaryFiles = try removeTemporaryFiles()
      if replay.isBehind {
        main = try renewMain(main, folding: replay.contents.header.salt, found)
        // The journal is removed after `renewMain` and not before it. A power cut could bring back the previous main file, whose latest
        // commits are in this journal.
        try fileSystem.remove(paths.journal)
        try fileSystem.syncDirectory(paths.directory)
      } else {
        journal = try renewJournal(replay.contents, from: data, main)
      }
    } else {
      report.removedTemporaryFiles = try removeTemporaryFiles()
      // `create` removes a new main file whose directory could not be synced. If the removal of an empty main file has failed, the file's
      // name may not be durable, so the main file is written again.
      let isUnused = main.header.generation == 1 && main.header.commit == 0
      if isUnused || main.header.folded == MainFileHeader.noJournal {
        main = try renewMain(main, folding: MainFileHeader.noJournal, found)
      }
    }
    // The quarantine file gets its final name last, when no later step can throw. If an opening failed after it has given the quarantine
    // file its final name, no later opening would report the cut.
    if let cut = report.cutTail { report.cutTail?.settleQuarantine(from: JSONFilePaths.unreported(cut), in: fileSystem) }
    let store = JSONFileStore(
      self, options: found.options, lock: found.lock, main: main, journal: journal, changes: found.journal?.replay.changes ?? [:],
      commit: report.commit.number, paging: found.paging ?? JSONFilePaging())
    store.use(main)
    store.paging.writeIndexFile(like: main, paths: paths, in: fileSystem)
    store.paging.trimIndexFile()
    store.saveCounts()
    // A main file newer than its journal was left by an unfinished checkpoint. After a failed sync of the directory, the name of the newer
    // main file may not be durable, and a second sync proves nothing. The journal continues both the previous and the newer main file, so
    // the journal stays until the next main file is durable.
    if let journal, journal.header.generation < main.header.generation { store.isMainDurable = false }
    return store
  }

  /// Writes the main file again, durably, if no journal could restore its records or if its journal is about to be removed.
  ///
  /// After a failed sync of the directory, the main file's name may not be durable, and a later sync proves nothing about that name. A
  /// power cut could then bring back the previous main file. `renewMain` therefore writes a new main file, renames it into place and syncs
  /// the directory. If the sync of the directory fails, the next opening again treats the main file's name as not durable. If a full disk
  /// has no room for the new main file, the old main file stays.
  /// - Parameter salt: The salt of the journal that is about to be removed, or `MainFileHeader.noJournal` if there is no journal.
  private func renewMain(
    _ main: MainFile, folding salt: UInt32, _ found: JSONFileOpening.Found
  ) throws(RepositoryError) -> MainFile {
    // `renewMain` makes no checkpoint, so it must neither replace the copy of the previous main file nor drop tombstones.
    var options = found.options
    options.keepsPreviousSnapshot = false
    options.limits.tombstones = .max
    let draft = MainFileDraft(
      paths: paths, fileSystem: fileSystem, main: main, changes: [:], commit: main.header.commit, journalSalt: salt, options: options,
      isIndexed: found.isPaged, indexes: found.paging?.indexDrafts ?? [])
    let next: MainFile
    do throws(RepositoryError) {
      next = try draft.write()
      do throws(RepositoryError) {
        try draft.replacement.rename()
      } catch {
        draft.discard(next)
        throw error
      }
    } catch {
      // The new main file would have the same commits as the old one, so the store opens with the old main file if the disk is full.
      guard error.code == .full else { throw error }
      return main
    }
    do throws(RepositoryError) { try fileSystem.syncDirectory(paths.directory) } catch {
      next.newIndex?.file?.discard(paths: paths, in: fileSystem)
      throw error
    }
    return next
  }

  private func create(_ found: JSONFileOpening.Found, _ report: inout OpenReport) throws(RepositoryError) -> JSONFileStore {
    report.removedTemporaryFiles = try removeTemporaryFiles()
    let header = MainFileHeader(
      storeID: report.storeID, generation: 1, commit: 0, tombstonesSince: 0, journal: MainFileHeader.newTag())
    let replacement = FileReplacement(path: paths.mainFile, fileSystem: fileSystem)
    var index: MainFileIndex?
    let file = try replacement.write(like: nil) { file throws(RepositoryError) in
      var writer = MainFileWriter(file, header, isIndexed: found.isPaged)
      index = try writer.finish()
      try file.lock()
      // If another process has created the store since this process has read the files, `rename` would replace that store by an empty one.
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
      // After a failed sync, a second sync would prove nothing about the new file's name. The empty main file is removed, and the next
      // opening creates another main file.
      do throws(RepositoryError) { try fileSystem.remove(paths.mainFile) } catch {}
      throw error
    }
    var paging = JSONFilePaging()
    if let index { paging.begin(index, file: nil, changes: [:], counts: [:]) }
    let store = JSONFileStore(
      self, options: found.options, lock: found.lock, main: main, journal: nil, changes: [:], commit: 0, paging: paging)
    store.paging.writeIndexFile(like: main, paths: paths, in: fileSystem)
    return store
  }

  /// Writes a torn tail durably to a quarantine file, whose name marks the cut as not yet reported.
  ///
  /// A torn tail is an unfinished write at the end of the journal. If the disk is full, a torn tail that was certainly never acknowledged
  /// is dropped, so that the store opens. A torn tail that may hold an acknowledged commit is not dropped, and the call throws `.full`.
  private func keepAside(_ cut: OpenReport.CutTail, of data: Data, _ main: MainFile) throws(RepositoryError) -> OpenReport.CutTail {
    let start = data.startIndex + Int(cut.offset)
    let tail = data[start..<(start + cut.byteCount)]
    let replacement = FileReplacement(path: cut.quarantineFile, fileSystem: fileSystem, requiresAttributes: false)
    do throws(RepositoryError) {
      try replacement.write(like: main) { copy throws(RepositoryError) in
        try tail.lending { bytes throws(RepositoryError) in try copy.write(bytes, at: 0) }
        try copy.sync()
        try copy.close()
        // The quarantine file is renamed only when it is complete, because the next opening reports the cut from the file's name and size.
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
  /// Nothing is appended to the old journal, because after a failed sync its bytes may be in the page cache only, and no later sync writes
  /// them. The new journal has no torn tail (unfinished write). A crash before the rename leaves the old journal unchanged.
  func renewJournal(_ contents: JournalReader.Contents, from data: Data, _ main: MainFile) throws(RepositoryError)
    -> JournalWriter
  {
    // A device may always refuse to set the data protection class, and recovery must open the store all the same. The next checkpoint
    // creates a journal with the protection class, or throws.
    let replacement = FileReplacement(path: paths.journal, fileSystem: fileSystem, requiresAttributes: false)
    var bytes = data.prefix(contents.end)
    // A commit writes its frame only into space that the journal file already has, and zero bytes must follow the frame. The new journal is
    // filled up with zero bytes as space for the next commits.
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
      // If the disk is full before the rename, the store continues the old journal. After the rename the error is thrown, because a power
      // cut could bring back the old journal without the frames appended to the new journal.
      guard error.code == .full, !isRenamed else { throw error }
      replacement.discard()
      return try continueJournal(contents, data)
    }
  }

  /// Continues to use the existing journal file, if a full disk has no room for a copy of the journal.
  ///
  /// Overwrites the frames with the same bytes and the rest of the file with zero bytes, because after a failed sync the file's bytes may
  /// be in the page cache only. If the disk has no space for the zero bytes, because the space for a large frame was never allocated, the
  /// end of the file is cut off.
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
    // The frames of the journal hold acknowledged commits, and no commit may be appended before these frames are durable.
    try file.sync()
    return try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk, growingIn: fileSystem)
  }

  /// Cuts a journal whose end has no space on the disk, down to the reserve for deletions or less, and overwrites the remaining bytes.
  private func giveBack(
    _ file: any OpenFile, _ contents: JournalReader.Contents, frames: Data, of count: Int, after cause: RepositoryError
  ) throws(RepositoryError) {
    if case .torn = contents.tail {
      // The start of an unfinished frame is zeroed and synced before the file is cut, because readers report a file that ends within a
      // frame as damaged.
      let zeros = [UInt8](repeating: 0, count: JournalFormat.terminatorSize)
      try zeros.lending { bytes throws(RepositoryError) in try file.write(bytes, at: contents.end) }
      try file.sync()
    }
    let (needed, chunk) = (contents.end + JournalFormat.terminatorSize, tuning.journalChunk)
    // The first size that is tried includes the reserve for deletions (a quarter of a chunk). The second size is the smallest that a reader
    // accepts, rounded up to blocks of 4,096 bytes.
    for size in [(needed + chunk / 4 + chunk - 1) / chunk * chunk, (needed + 4095) / 4096 * 4096] where size <= count {
      try file.cut(to: size)
      // On a file system that cannot shorten a file, `cut(to:)` leaves the size unchanged and frees no space.
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
