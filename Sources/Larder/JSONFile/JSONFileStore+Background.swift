internal import Dispatch
internal import Foundation

extension JSONFileStore {
  /// The most that is carried over between two commits, in bytes.
  private static var mostAtOnce: Int { 256 << 10 }

  /// Begins a checkpoint that goes on beside commits.
  /// - Returns: Its long part; `nil` when it is over.
  func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try checkHealth()
    try checkFiles()
    guard folding == nil else { return nil }
    guard let journal, commit > main.header.commit else {
      try checkpoint()
      return nil
    }
    givenUp = nil
    let draft = TransferBox(draft())
    let work = BackgroundWork<MainFile> { work throws(RepositoryError) in
      guard let draft = draft.value else { throw .checkpointGivenUp }
      return try draft.write(work)
    }
    folding = FoldInProgress(part: .mainFile(work, draft), mark: journal.end)
    changes = [:]
    return { work.run() }
  }

  /// Continues a checkpoint whose long part has ended.
  /// - Returns: The next long part; `nil` when the checkpoint is over, or was given up.
  func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    if let error = givenUp.take() { throw error }
    guard let folding else { return nil }
    switch folding.part {
    case .mainFile(let work, _):
      do throws(RepositoryError) {
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
      // What the main file was made of is let go of elsewhere.
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
        isMainDurable = true
        guard let journal else {
          giveUpFolding()
          return nil
        }
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
        // A crash may bring the old journal back, without what was appended to the new one.
        giveUpFolding()
        throw noted(error)
      }
      self.folding = nil
      return nil
    }
  }

  /// Carries the frames that the new main file does not have over to a new journal, up to the end that the old one has now.
  ///
  /// - Parameter carried: The new journal, if it was begun before; else the name of the main file is made durable first.
  private func carryOver(
    _ carrier: JournalCarrier, from mark: Int, to carried: CarriedJournal? = nil, rounds: Int = 0
  ) -> (@Sendable () -> Void)? {
    guard let journal else { return nil }
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

  /// The space behind the frames that were carried over: for those that are carried over between two commits, and for the next commits.
  private var room: JournalCarrier.Room {
    JournalCarrier.Room(chunk: tuning.journalChunk, count: journal.map { $0.end > Self.mostAtOnce } == true ? 2 * Self.mostAtOnce : 0)
  }

  /// Carries the last frames over and puts the new journal in the place of the old one.
  ///
  /// Waits for the disk only for commits that were acknowledged as durable: the others are synced with the next one that is.
  /// - Returns: What makes its name durable.
  private func replaceJournal(
    _ carried: CarriedJournal, _ carrier: JournalCarrier, _ old: JournalWriter
  ) throws(RepositoryError) -> @Sendable () -> Void {
    let end = try carrier.carry(carried.sourceEnd..<old.end, to: carried.file, at: carried.end)
    let size = try carried.file.size()
    let isInRoom = end + JournalFormat.terminatorSize <= size
    if !isInRoom { try carrier.makeRoom(.init(chunk: tuning.journalChunk, count: 0), in: carried.file, at: end) }
    let mustSync = !isInRoom || old.durableThrough > carried.commit
    if mustSync { try carried.file.sync() }
    let contents = JournalReader.Contents(header: carrier.new, lastCommit: commit, end: end)
    let new = try JournalWriter(
      continuing: carried.file, contents, chunk: tuning.journalChunk, name: paths.journal,
      durableThrough: mustSync ? commit : carried.commit, growingIn: fileSystem)
    try FileReplacement(path: paths.journal, fileSystem: fileSystem).rename()
    (journal, isJournalDurable) = (new, false)
    let (fileSystem, directory) = (fileSystem, paths.directory)
    let work = BackgroundWork<Void> { _ throws(RepositoryError) in try fileSystem.syncDirectory(directory) }
    folding = FoldInProgress(part: .name(work, old), mark: carried.sourceEnd)
    return {
      work.run()
      // What was in it is in the new one; it is closed when it is released, at the latest. A large file takes a while to be freed.
      do throws(RepositoryError) { try old.close() } catch {}
    }
  }

  /// Gives up a checkpoint that goes on beside commits, and waits until nothing is done for it any more.
  func giveUpFolding() {
    guard let folding = folding.take() else { return }
    switch folding.part {
    case .mainFile(let work, let box):
      let unused = work.giveUp()
      guard var draft = box.take() else { break }
      if let unused { draft.replacement.discard(unused.file) }
      // The draft's dictionary has no other owner now: it takes the newer changes in without being copied.
      var all = draft.changes
      draft.changes = [:]
      all.merge(changes) { $1 }
      changes = all
    case .journal(let work, _):
      if work.giveUp() != nil { isMainDurable = true }
      // The old journal has everything; a temporary file that stays is removed by the next open.
      FileReplacement(path: paths.journal, fileSystem: fileSystem).discard()
    case .name(let work, let old):
      // What is under way for the old journal must not meet a later one that has its name and number.
      old.stopGrowing()
      if work.giveUp() != nil { isJournalDurable = true }
      // If it was not done, the next commit that is durable makes it so; if it failed, no later sync says more.
      if let error = work.failure, !isJournalDurable, !error.isOfOpening { _ = noted(unsynced(error)) }
    }
  }
}

/// A checkpoint that goes on beside commits.
///
/// First the main file is written, with everything up to one commit; then it is put into place, and the journal has that and what came
/// since, which recovers to the same; then the frames that came since are carried over to a new journal, which takes the place of the old
/// one. Whatever waits for the disk is done beside commits: the names are made durable there too, before anything is dropped or
/// acknowledged that depends on them.
struct FoldInProgress: Sendable {
  enum Part: Sendable {
    case mainFile(BackgroundWork<MainFile>, TransferBox<MainFileDraft>)
    case journal(BackgroundWork<CarriedJournal>, JournalCarrier)
    /// Makes the name of the new journal durable, which takes the place of another one.
    case name(BackgroundWork<Void>, JournalWriter)
  }
  let part: Part
  /// The offset of the first frame in the journal that the new main file does not have.
  let mark: Int
  /// The number of times that frames which came meanwhile were carried over.
  var rounds = 0
}

/// A journal to come, as far as it has the frames of the one before.
struct CarriedJournal: Sendable {
  let file: any OpenFile
  let sourceEnd: Int
  let end: Int
  /// The last commit that it has, synced.
  let commit: UInt64
}
