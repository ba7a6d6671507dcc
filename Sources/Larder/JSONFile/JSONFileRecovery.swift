internal import Foundation

/// The second step of opening: writes what has to be written once the store has accepted what was read.
struct JSONFileRecovery {
  let paths: JSONFilePaths
  let fileSystem: any FileSystem
  let tuning: JSONFileBackend.Tuning

  /// Creates the store, or cuts and renews its journal.
  ///
  /// What it throws leaves nothing lost, and the locks held.
  /// - Parameter report: What was found; gets what was done.
  func run(_ found: JSONFileOpening.Found, _ report: inout OpenReport) throws(RepositoryError) -> JSONFileStore {
    guard var main = found.main else { return try create(found, &report) }
    try JSONFileStore.checkMainFile(main, at: paths.mainFile, fileSystem)
    var journal: JournalWriter?
    if let (data, replay) = found.journal.map({ ($0.data, $0.replay) }) {
      if let cut = report.cutTail, case .torn = replay.contents.tail { report.cutTail = try keepAside(cut, of: data, main) }
      report.removedTemporaryFiles = try removeTemporaryFiles()
      if replay.isBehind {
        main = try renewMain(main, folding: replay.contents.header.salt, found.options)
        try fileSystem.remove(paths.journal)
        try fileSystem.syncDirectory(paths.directory)
      } else {
        journal = try renewJournal(replay.contents, from: data, main)
      }
    } else {
      report.removedTemporaryFiles = try removeTemporaryFiles()
      // A new store whose name could not be synced could not be removed either, perhaps.
      let isUnused = main.header.generation == 1 && main.header.commit == 0
      if isUnused || main.header.folded == MainFileHeader.noJournal {
        main = try renewMain(main, folding: MainFileHeader.noJournal, found.options)
      }
    }
    if let cut = report.cutTail { report.cutTail?.settleQuarantine(from: JSONFilePaths.unreported(cut), in: fileSystem) }
    let store = JSONFileStore(
      self, found.options, found.lock, main, journal: journal, changes: found.journal?.replay.changes ?? [:], commit: report.commit.number)
    // A main file that is newer than its journal may owe its name to a sync that has failed, after which none says more. The journal
    // continues the one before it too, and stays until the next main file has its name durably.
    if let journal, journal.header.generation < main.header.generation { store.isMainDurable = false }
    return store
  }

  /// Writes the main file anew, durably, where no journal could bring back what is in it, or where that journal is about to go.
  ///
  /// It may owe its name to a sync that has failed, after which a later one says nothing of that name: a power cut could bring the one
  /// before it back. The new one has a name of its own to sync; if that fails, the next opening finds what this one has found. Where a full
  /// disk has no room for it, the old one stays.
  /// - Parameter salt: The salt of the journal that is about to go.
  private func renewMain(_ main: MainFile, folding salt: UInt32, _ options: StoreOptions) throws(RepositoryError) -> MainFile {
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
      // No later sync would say that its name is durable: it goes, and the next attempt makes another. Nothing is in it.
      do throws(RepositoryError) { try fileSystem.remove(paths.mainFile) } catch {}
      throw error
    }
    return JSONFileStore(self, found.options, found.lock, main, journal: nil, changes: [:], commit: 0)
  }

  /// Keeps a torn tail aside before it is cut: durably, in a file of its own, whose name says that it has not been reported yet.
  ///
  /// A full disk must not keep a store shut because of a write that was never finished; where something acknowledged may be among the
  /// bytes, it does.
  private func keepAside(_ cut: OpenReport.CutTail, of data: Data, _ main: MainFile) throws(RepositoryError) -> OpenReport.CutTail {
    let start = data.startIndex + Int(cut.offset)
    let tail = data[start..<(start + cut.byteCount)]
    let replacement = FileReplacement(path: cut.quarantineFile, fileSystem: fileSystem, requiresAttributes: false)
    do throws(RepositoryError) {
      try replacement.write(like: main) { copy throws(RepositoryError) in
        try tail.lending { bytes throws(RepositoryError) in try copy.write(bytes, at: 0) }
        try copy.sync()
        try copy.close()
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

  /// Copies the whole frames into a new journal, synced, in the place of the old one.
  ///
  /// The old one is not appended to: if a sync of it has failed before, the system may hold bytes that no later sync writes. The tail is
  /// left behind in one step, so that a crash here finds it as it was.
  func renewJournal(_ contents: JournalReader.Contents, from data: Data, _ main: MainFile) throws(RepositoryError)
    -> JournalWriter
  {
    // A refusal that lasts would keep the store shut. The next checkpoint makes a journal with the class, or fails.
    let replacement = FileReplacement(path: paths.journal, fileSystem: fileSystem, requiresAttributes: false)
    var bytes = data.prefix(contents.end)
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
      // A full disk must not keep a store shut: it goes on with the journal that is there. Not once the new one has its name, though: a
      // power cut could bring the old one back, without what would be appended to the new one.
      guard error.code == .full, !isRenamed else { throw error }
      replacement.discard()
      return try continueJournal(contents, data)
    }
  }

  /// Goes on with the journal that is there, which needs no space: writes its frames over themselves, since a sync that failed may have
  /// left them in the page cache only, and zeros over the rest, for the same reason.
  ///
  /// Where the rest has no room, because the space for a frame was left out, it is given back.
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
    try file.sync()
    return try JournalWriter(continuing: file, contents, chunk: tuning.journalChunk, growingIn: fileSystem)
  }

  /// Overwrites a journal whose rest has no room, and cuts the rest: what deletions on a full disk need stays, if that has room.
  private func giveBack(
    _ file: any OpenFile, _ contents: JournalReader.Contents, _ frames: Data, of count: Int, after cause: RepositoryError
  ) throws(RepositoryError) {
    if case .torn = contents.tail {
      // The beginning of a torn frame first, durably: a file that ends within a frame was cut, and not by a crash.
      let zeros = [UInt8](repeating: 0, count: JournalFormat.terminatorSize)
      try zeros.lending { bytes throws(RepositoryError) in try file.write(bytes, at: contents.end) }
      try file.sync()
    }
    let (needed, chunk) = (contents.end + JournalFormat.terminatorSize, tuning.journalChunk)
    for size in [(needed + chunk / 4 + chunk - 1) / chunk * chunk, (needed + 4095) / 4096 * 4096] where size <= count {
      try file.cut(to: size)
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
