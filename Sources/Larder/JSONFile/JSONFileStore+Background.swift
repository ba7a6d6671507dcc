internal import Dispatch
internal import Foundation

extension JSONFileStore {
  /// Largest number of bytes to copy between two commits, which wait for it.
  private static var mostAtOnce: Int { 256 << 10 }

  /// Begins a checkpoint that runs beside commits.
  /// - Returns: The long part, or `nil` if the checkpoint is over.
  func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try checkHealth()
    try checkFiles()
    guard folding == nil else { return nil }
    // Without a journal there are no frames to copy, and without new commits there is nothing to fold.
    guard let journal, commit > main.header.commit else {
      try checkpoint()
      return nil
    }
    givenUp = nil
    // In a box, so that `giveUpFolding` gets the changes back as their only owner and need not copy them.
    let draft = TransferBox(draft())
    let work = BackgroundWork<MainFile> { work throws(RepositoryError) in
      guard let draft = draft.value else { throw .checkpointGivenUp }
      return try draft.write(work)
    }
    folding = FoldInProgress(part: .mainFile(work, draft), mark: journal.end)
    // Later commits are collected apart, since the checkpoint's thread reads the draft's changes.
    changes = [:]
    return { work.run() }
  }

  /// Continues a checkpoint whose long part has ended.
  /// - Returns: The next long part, or `nil` if the checkpoint is over or was given up.
  func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    if let error = givenUp.take() { throw error }
    guard let folding else { return nil }
    switch folding.part {
    case .mainFile(let work, _):
      do throws(RepositoryError) {
        // The files may have been replaced while the part ran.
        try checkHealth()
        try checkFiles()
        let next = try work.result()
        try renameMain(to: next)
        self.folding = nil
        takeIntoUse(next)
      } catch {
        giveUpFolding()
        throw error
      }
      let next = journal.flatMap { journal in
        let new = JournalHeader(continuing: main.header)
        let carrier = JournalCarrier(source: journal.file, old: journal.header, new: new, name: paths.journal)
        return carryOver(carrier, from: folding.mark)
      }
      // The draft with its changes is freed on another thread, because a commit would wait for it here.
      let done = TransferBox(folding)
      guard let next else {
        DispatchQueue.global(qos: .utility).async { done.take() }
        return nil
      }
      return {
        next()
        done.take()
      }
    case .journal(let work, let carrier):
      do throws(RepositoryError) {
        try checkHealth()
        try checkFiles()
        let carried = try work.result()
        // The work synced the directory before it copied frames.
        isMainDurable = true
        guard let journal else {
          giveUpFolding()
          return nil
        }
        // Eight rounds at most: writers that keep ahead of the copying must not delay the end for ever.
        if journal.end - carried.sourceEnd > Self.mostAtOnce, folding.rounds < 8 {
          return carryOver(carrier, from: carried.sourceEnd, to: carried, rounds: folding.rounds + 1)
        }
        return try replaceJournal(carried, carrier, journal)
      } catch {
        giveUpFolding()
        throw noted(error)
      }
    case .name:
      do throws(RepositoryError) {
        try checkHealth()
        try syncJournalName()
      } catch {
        // A crash may bring back the old journal, without the commits appended to the new one.
        giveUpFolding()
        throw noted(error)
      }
      self.folding = nil
      return nil
    }
  }

  /// Starts to copy the frames that the new main file lacks into a new journal, up to the present end of the old one.
  ///
  /// - Parameter carried: The new journal, if an earlier round has begun it. Otherwise the main file's name is first made durable.
  private func carryOver(
    _ carrier: JournalCarrier, from mark: Int, to carried: CarriedJournal? = nil, rounds: Int = 0
  ) -> (@Sendable () -> Void)? {
    guard let journal else { return nil }
    // Read here: the work runs on another thread, and the store belongs to its executor.
    let (fileSystem, main, end, commit, directory) = (fileSystem, main, journal.end, journal.lastCommit, paths.directory)
    let replacement = FileReplacement(path: paths.journal, fileSystem: fileSystem)
    let room = room
    let work = BackgroundWork<CarriedJournal> { work throws(RepositoryError) in
      func carry(to file: any OpenFile, at target: Int) throws(RepositoryError) -> CarriedJournal {
        let target = try carrier.carry(mark..<end, to: file, at: target, work)
        try carrier.makeRoom(room, in: file, at: target)
        try file.sync()
        return CarriedJournal(file: file, sourceEnd: end, end: target, commit: commit)
      }
      if let carried { return try carry(to: carried.file, at: carried.end) }
      // The new journal continues the new main file only. It may not exist before that file's name is durable.
      try fileSystem.syncDirectory(directory)
      return try replacement.write(like: main) { file throws(RepositoryError) in
        let header = carrier.new.bytes
        try header.lending { bytes throws(RepositoryError) in try file.write(bytes, at: 0) }
        return try carry(to: file, at: header.count)
      }
    }
    folding = FoldInProgress(part: .journal(work, carrier), mark: mark, rounds: rounds)
    return { work.run() }
  }

  /// Space behind the copied frames, for the frames that are copied between two commits and for the next commits.
  private var room: JournalCarrier.Room {
    JournalCarrier.Room(chunk: tuning.journalChunk, count: journal.map { $0.end > Self.mostAtOnce } == true ? 2 * Self.mostAtOnce : 0)
  }

  /// Copies the last frames and renames the new journal over the old one.
  ///
  /// Syncs only if a commit that was acknowledged as durable is not synced in the new journal yet. The others become durable with the next
  /// sync.
  /// - Returns: A closure that makes the new journal's name durable.
  private func replaceJournal(
    _ carried: CarriedJournal, _ carrier: JournalCarrier, _ old: JournalWriter
  ) throws(RepositoryError) -> @Sendable () -> Void {
    let end = try carrier.carry(carried.sourceEnd..<old.end, to: carried.file, at: carried.end)
    let size = try carried.file.size()
    // A frame may not end the file: a reader takes that for a journal that was cut.
    let isInRoom = end + JournalFormat.terminatorSize <= size
    if !isInRoom { try carrier.makeRoom(.init(chunk: tuning.journalChunk, count: 0), in: carried.file, at: end) }
    let mustSync = !isInRoom || old.durableThrough > carried.commit
    if mustSync { try carried.file.sync() }
    let contents = JournalReader.Contents(header: carrier.new, lastCommit: commit, end: end)
    let new = try JournalWriter(
      continuing: carried.file, contents, chunk: tuning.journalChunk, name: paths.journal,
      durableThrough: mustSync ? commit : carried.commit, growingIn: fileSystem)
    try FileReplacement(path: paths.journal, fileSystem: fileSystem).rename()
    // Not yet: a durable commit must sync the directory first, see `commit`.
    (journal, isJournalDurable) = (new, false)
    let (fileSystem, directory) = (fileSystem, paths.directory)
    let work = BackgroundWork<Void> { _ throws(RepositoryError) in try fileSystem.syncDirectory(directory) }
    folding = FoldInProgress(part: .name(work, old), mark: carried.sourceEnd)
    return {
      work.run()
      // All its frames are in the new journal, so an error of `close` means nothing. Here, since freeing a large file takes a while.
      do throws(RepositoryError) { try old.close() } catch {}
    }
  }

  /// Cancels the checkpoint that runs beside commits, and waits until none of its work is running.
  func giveUpFolding() {
    guard let folding = folding.take() else { return }
    switch folding.part {
    case .mainFile(let work, let box):
      let unused = work.giveUp()
      guard var draft = box.take() else { break }
      if let unused { draft.replacement.discard(unused.file) }
      // The dictionary has no other owner now, so the merge does not copy it.
      var all = draft.changes
      draft.changes = [:]
      // The newer changes win, since the draft has those of earlier commits.
      all.merge(changes) { $1 }
      changes = all
    case .journal(let work, _):
      if work.giveUp() != nil { isMainDurable = true }
      // The old journal has every frame. The next open removes a temporary file that stays.
      FileReplacement(path: paths.journal, fileSystem: fileSystem).discard()
    case .name(let work, let old):
      // Growth of the old journal opens its file by name, and must not meet a later journal that has the same name and inode.
      old.stopGrowing()
      if work.giveUp() != nil { isJournalDurable = true }
      // If the sync did not run, the next durable commit runs it. If it failed, no later sync proves anything.
      if let error = work.failure, !isJournalDurable, !error.isOfOpening { _ = noted(unsynced(error)) }
    }
  }
}

/// The state of a checkpoint that runs beside commits.
///
/// First the new main file is written, with everything up to one commit. Then it is renamed into place. The journal now has those commits
/// and the later ones, which recovers to the same records. Then the later frames are copied to a new journal, which replaces the old one.
/// Every wait for the disk runs beside commits. That includes the syncs of the directory, before anything is dropped or acknowledged that
/// depends on them.
struct FoldInProgress: Sendable {
  enum Part: Sendable {
    case mainFile(BackgroundWork<MainFile>, TransferBox<MainFileDraft>)
    case journal(BackgroundWork<CarriedJournal>, JournalCarrier)
    /// The sync that makes the new journal's name durable, and the replaced journal.
    case name(BackgroundWork<Void>, JournalWriter)
  }
  let part: Part
  /// Offset in the journal of the first frame that the new main file lacks.
  let mark: Int
  /// Number of rounds in which frames of later commits were copied.
  var rounds = 0
}

/// A new journal with the frames that were copied to it so far.
struct CarriedJournal: Sendable {
  let file: any OpenFile
  let sourceEnd: Int
  let end: Int
  /// Last commit that is synced in the new journal.
  let commit: UInt64
}
