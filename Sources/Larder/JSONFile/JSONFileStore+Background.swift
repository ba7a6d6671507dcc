internal import Dispatch
internal import Foundation

extension JSONFileStore {
  /// Largest number of bytes of journal frames that are copied on the store's executor, while commits wait for the copy.
  private static var mostAtOnce: Int { 256 << 10 }

  /// Begins a checkpoint that runs beside commits, and returns the first part of its work for another thread.
  ///
  /// - Returns: The work to run on another thread, or `nil` if the checkpoint is complete or another one is running.
  func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try checkHealth()
    try checkFiles()
    guard folding == nil else { return nil }
    // Without a journal there are no frames to copy, and without new commits there is nothing to fold into the main file. In both cases the
    // checkpoint is short and is done at once.
    guard let journal, commit > main.header.commit else {
      try checkpoint()
      return nil
    }
    givenUp = nil
    // The draft of the next main file is in a box that both threads hold. `giveUpFolding` empties the box, becomes the only owner of the
    // changes, and need not copy them.
    let draft = TransferBox(draft())
    let work = BackgroundWork<MainFile> { work throws(RepositoryError) in
      guard let draft = draft.value else { throw .checkpointGivenUp }
      return try draft.write(work)
    }
    folding = FoldInProgress(part: .mainFile(work, draft), mark: journal.end)
    // Later commits go into an empty dictionary, because the checkpoint's thread reads the earlier changes in the draft at the same time.
    changes = [:]
    return { work.run() }
  }

  /// Continues a checkpoint after a part of its work has ended on another thread.
  ///
  /// - Returns: The next work to run on another thread, or `nil` if the checkpoint is complete or was given up.
  func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    if let error = givenUp.take() { throw error }
    guard let folding else { return nil }
    switch folding.part {
    case .mainFile(let work, _):
      do throws(RepositoryError) {
        // Another process may have replaced the store's files while the main file was written on another thread.
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
      // The draft with its changes is freed on another thread, because freeing a large dictionary on the store's executor would delay the
      // next commit.
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
        // The background work has synced the directory before it copied frames, so the main file's name is durable.
        isMainDurable = true
        guard let journal else {
          giveUpFolding()
          return nil
        }
        // At most eight rounds copy frames beside commits. Without this limit, writers that append faster than a round copies could delay
        // the checkpoint's end for ever.
        if journal.end - carried.sourceEnd > Self.mostAtOnce, folding.rounds < 8 {
          return carryOver(carrier, from: carried.sourceEnd, to: carried, rounds: folding.rounds + 1)
        }
        return try replaceJournal(journal, with: carried, by: carrier)
      } catch {
        giveUpFolding()
        throw noted(error)
      }
    case .name:
      do throws(RepositoryError) {
        try checkHealth()
        try syncJournalName()
      } catch {
        // If the sync of the directory has failed, a crash may bring back the old journal, which lacks the commits that were appended to
        // the new journal. After such a failure `noted` stops all writing.
        giveUpFolding()
        throw noted(error)
      }
      self.folding = nil
      return nil
    }
  }

  /// Starts to copy journal frames that the new main file lacks into a new journal, up to the present end of the old journal.
  ///
  /// - Parameter carried: The new journal, if an earlier round has begun it, or `nil` in the first round, which first makes the main file's
  ///   name durable.
  private func carryOver(
    _ carrier: JournalCarrier, from mark: Int, to carried: CarriedJournal? = nil, rounds: Int = 0
  ) -> (@Sendable () -> Void)? {
    guard let journal else { return nil }
    // The store's properties are read before the work starts, because the work runs on another thread and only the executor may use the
    // store.
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
      // A store can replay the new journal only after the new main file. The directory is synced first, because a power cut must not leave
      // the old main file beside the new journal.
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

  /// Space to allocate behind the copied frames, for the last frames, which are copied while commits wait, and for the next commits.
  private var room: JournalCarrier.Room {
    JournalCarrier.Room(chunk: tuning.journalChunk, count: journal.map { $0.end > Self.mostAtOnce } == true ? 2 * Self.mostAtOnce : 0)
  }

  /// Copies the last frames to the new journal and renames it over the old one.
  ///
  /// Syncs the new journal only if its file had to grow, or if the new journal has an unsynced commit that was acknowledged as durable.
  /// Other commits become durable with the next sync of the journal.
  /// - Returns: A closure that makes the new journal's name durable.
  private func replaceJournal(
    _ old: JournalWriter, with carried: CarriedJournal, by carrier: JournalCarrier
  ) throws(RepositoryError) -> @Sendable () -> Void {
    let end = try carrier.carry(carried.sourceEnd..<old.end, to: carried.file, at: carried.end)
    let size = try carried.file.size()
    // Zero bytes must follow the last frame, because a reader takes a journal without them to be cut off in the middle.
    let isInRoom = end + JournalFormat.terminatorSize <= size
    if !isInRoom { try carrier.makeRoom(.init(chunk: tuning.journalChunk, count: 0), in: carried.file, at: end) }
    let mustSync = !isInRoom || old.durableThrough > carried.commit
    if mustSync { try carried.file.sync() }
    let contents = JournalReader.Contents(header: carrier.new, lastCommit: commit, end: end)
    let new = try JournalWriter(
      continuing: carried.file, contents, chunk: tuning.journalChunk, name: paths.journal,
      durableThrough: mustSync ? commit : carried.commit, growingIn: fileSystem)
    try FileReplacement(path: paths.journal, fileSystem: fileSystem).rename()
    // The new journal's name is not durable yet, so a durable commit syncs the directory first (see `JSONFileStore.commit`).
    (journal, isJournalDurable) = (new, false)
    let (fileSystem, directory) = (fileSystem, paths.directory)
    let work = BackgroundWork<Void> { _ throws(RepositoryError) in try fileSystem.syncDirectory(directory) }
    folding = FoldInProgress(part: .name(work, old), mark: carried.sourceEnd)
    return {
      work.run()
      // The new journal has all frames of the old one, so an error of `close` is harmless. The old journal is closed on this background
      // thread, because freeing a large file takes a while.
      do throws(RepositoryError) { try old.close() } catch {}
    }
  }

  /// Cancels the checkpoint that runs beside commits, and blocks until none of its work is running.
  func giveUpFolding() {
    guard let folding = folding.take() else { return }
    switch folding.part {
    case .mainFile(let work, let box):
      let unused = work.giveUp()
      guard var draft = box.take() else { break }
      if let unused { draft.replacement.discard(unused.file) }
      // The draft is emptied first, so that the dictionary has no other owner and the merge does not copy it.
      var all = draft.changes
      draft.changes = [:]
      // For a record in both dictionaries the store's change is kept, because the draft's changes are of earlier commits.
      all.merge(changes) { $1 }
      changes = all
    case .journal(let work, _):
      if work.giveUp() != nil { isMainDurable = true }
      // The old journal still has every frame, so the unfinished new journal is discarded. If `discard` cannot remove the temporary file,
      // the next opening removes it.
      FileReplacement(path: paths.journal, fileSystem: fileSystem).discard()
    case .name(let work, let old):
      // Background growth of the old journal opens its file by name. The growth is stopped, because it could otherwise enlarge a later
      // journal with the same name and inode.
      old.stopGrowing()
      if work.giveUp() != nil { isJournalDurable = true }
      // If the sync of the directory did not run, the next durable commit syncs the directory. If the sync failed, no later sync proves
      // that the new journal's name is durable, so all writing stops.
      if let error = work.failure, !isJournalDurable, !error.isOfOpening { _ = noted(unsynced(error)) }
    }
  }
}

/// The state of a checkpoint that runs beside commits.
///
/// A background checkpoint first writes a new main file with all records up to one commit, and renames the file into place. The journal
/// still has the commits of the new main file and all later ones, so that either main file recovers to the same records with it. The
/// checkpoint then copies the frames of later commits to a new journal, which replaces the old journal. Every wait for the disk runs beside
/// commits, including the syncs of the directory. A commit that depends on a sync of the directory is acknowledged only after that sync,
/// and a file that the sync makes superfluous is dropped only after it.
struct FoldInProgress: Sendable {
  enum Part: Sendable {
    case mainFile(BackgroundWork<MainFile>, TransferBox<MainFileDraft>)
    case journal(BackgroundWork<CarriedJournal>, JournalCarrier)
    /// The checkpoint's last part: the sync that makes the new journal's name durable, and the replaced journal.
    case name(BackgroundWork<Void>, JournalWriter)
  }
  let part: Part
  /// Offset in the journal of the first frame that the new main file lacks.
  let mark: Int
  /// Number of rounds in which frames of later commits were copied to the new journal.
  var rounds = 0
}

/// A new journal with the frames that a background checkpoint has copied to it so far.
struct CarriedJournal: Sendable {
  let file: any OpenFile
  /// Offset in the old journal up to which frames were copied.
  let sourceEnd: Int
  /// Offset behind the last frame in the new journal.
  let end: Int
  /// Last commit that is synced in the new journal.
  let commit: UInt64
}
