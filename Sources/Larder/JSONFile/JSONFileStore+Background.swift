internal import Dispatch
internal import Foundation

/// A checkpoint that goes on beside commits.
///
/// First the snapshot is written, with everything up to one commit; then it is put into place, and the journal has that and what came
/// since, which recovers to the same; then the frames that came since are carried over to a new journal, which takes the place of the old one.
struct FoldInProgress: Sendable {
  enum Part: Sendable {
    case snapshot(BackgroundWork<MainFile>, SnapshotDraft)
    case journal(BackgroundWork<CarriedJournal>, JournalCarrier)
  }
  let part: Part
  /// Where the frames begin in the journal that the new snapshot does not have.
  let mark: Int
  /// How often frames that came meanwhile were carried over.
  var rounds = 0
}

/// A journal to come, as far as it has the frames of the one before.
struct CarriedJournal: Sendable {
  let file: any OpenFile
  let sourceEnd: Int
  let end: Int
}

extension JSONFileStore {
  /// The most that is carried over between two commits, in bytes.
  private static var mostAtOnce: Int { 1 << 20 }

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
    let draft = draft()
    let work = BackgroundWork<MainFile> { work throws(RepositoryError) in try draft.write(work) }
    folding = FoldInProgress(part: .snapshot(work, draft), mark: journal.end)
    changes = [:]
    return { work.run() }
  }

  /// Goes on with a checkpoint whose long part has ended.
  /// - Returns: The next long part; `nil` when the checkpoint is over, or was given up.
  func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    guard let folding else { return nil }
    switch folding.part {
    case .snapshot(let work, _):
      do throws(RepositoryError) {
        try checkHealth()
        try checkFiles()
        let next = try work.result()
        try fileSystem.rename(JSONFilePaths.temporary(for: paths.snapshot), to: paths.snapshot)
        self.folding = nil
        try install(next)
      } catch {
        giveUpFolding()
        throw error
      }
      let next = try carryOver(from: folding.mark)
      // What the snapshot was made of is let go of elsewhere: freeing a million changes takes longer than a commit may wait.
      let release: @Sendable () -> Void = { withExtendedLifetime(folding) {} }
      guard let next else {
        DispatchQueue.global(qos: .utility).async(execute: release)
        return nil
      }
      return {
        next()
        release()
      }
    case .journal(let work, let carrier):
      do throws(RepositoryError) {
        try checkHealth()
        try checkFiles()
        let carried = try work.result()
        guard let journal else { return nil }
        if journal.end - carried.sourceEnd > Self.mostAtOnce, folding.rounds < 8 {
          return carryOn(carried, carrier, to: journal.end, rounds: folding.rounds + 1)
        }
        try replaceJournal(carried, carrier, journal)
      } catch {
        giveUpFolding()
        throw noted(error)
      }
      return nil
    }
  }

  /// Begins a journal for the new snapshot with the frames that it does not have.
  private func carryOver(from mark: Int) throws(RepositoryError) -> (@Sendable () -> Void)? {
    guard let journal, journal.end > mark else {
      try createJournal()
      return nil
    }
    let new = JournalHeader(
      storeID: main.header.storeID, generation: main.header.generation, base: main.header.commit, salt: .random(in: .min ... .max),
      tag: main.header.journal ?? 0)
    let carrier = JournalCarrier(source: journal.file, old: journal.header, new: new, name: paths.journal)
    let (fileSystem, owner, end) = (fileSystem, main.owner, journal.end)
    let temporary = JSONFilePaths.temporary(for: paths.journal)
    let work = BackgroundWork<CarriedJournal> { work throws(RepositoryError) in
      try fileSystem.remove(temporary)
      let file = try fileSystem.create(temporary)
      if let owner { try file.setOwner(owner) }
      try new.bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: 0) }
      let target = try carrier.carry(mark..<end, to: file, at: new.bytes.count, work)
      try file.sync()
      return CarriedJournal(file: file, sourceEnd: end, end: target)
    }
    folding = FoldInProgress(part: .journal(work, carrier), mark: mark)
    return { work.run() }
  }

  /// Carries over what came while frames were carried over.
  private func carryOn(_ carried: CarriedJournal, _ carrier: JournalCarrier, to end: Int, rounds: Int) -> @Sendable () -> Void {
    let work = BackgroundWork<CarriedJournal> { work throws(RepositoryError) in
      let target = try carrier.carry(carried.sourceEnd..<end, to: carried.file, at: carried.end, work)
      try carried.file.sync()
      return CarriedJournal(file: carried.file, sourceEnd: end, end: target)
    }
    folding = FoldInProgress(part: .journal(work, carrier), mark: carried.sourceEnd, rounds: rounds)
    return { work.run() }
  }

  /// Carries the last frames over and puts the new journal in the place of the old one.
  private func replaceJournal(_ carried: CarriedJournal, _ carrier: JournalCarrier, _ old: JournalWriter) throws(RepositoryError) {
    let end = try carrier.carry(carried.sourceEnd..<old.end, to: carried.file, at: carried.end)
    let chunk = tuning.journalChunk
    let size = (end + JournalFormat.terminatorSize + chunk - 1) / chunk * chunk
    let zeros = [UInt8](repeating: 0, count: size - end)
    try zeros.lending { bytes throws(RepositoryError) in try carried.file.write(bytes, at: end) }
    try carried.file.sync()
    let contents = JournalReader.Contents(header: carrier.new, lastCommit: commit, end: end)
    let new = try JournalWriter(continuing: carried.file, contents, chunk: chunk, name: paths.journal)
    try fileSystem.rename(JSONFilePaths.temporary(for: paths.journal), to: paths.journal)
    folding = nil
    journal = new
    // What was in it is in the new one; it is closed when it is released, at the latest.
    do throws(RepositoryError) { try old.close() } catch {}
    do throws(RepositoryError) {
      try fileSystem.syncDirectory(paths.directory)
    } catch {
      // A crash may bring the old journal back, without what would be appended to the new one.
      throw RepositoryError(.outcomeUnknown, "the directory could not be synced", file: paths.directory, underlying: error)
    }
  }

  /// Gives up a checkpoint that goes on beside commits, and waits until nothing is done for it any more.
  func giveUpFolding() {
    guard let folding = folding.take() else { return }
    switch folding.part {
    case .snapshot(let work, let draft):
      if let unused = work.giveUp() { draft.discard(unused.file) }
      changes = draft.changes.merging(changes) { $1 }
    case .journal(let work, _):
      _ = work.giveUp()
      // The old journal has everything; a temporary file that stays is removed by the next open.
      do throws(RepositoryError) { try fileSystem.remove(JSONFilePaths.temporary(for: paths.journal)) } catch {}
    }
  }
}
