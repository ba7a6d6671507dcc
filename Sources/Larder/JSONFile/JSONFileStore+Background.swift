internal import Dispatch
internal import Foundation

extension JSONFileStore {
  /// Number of bytes of journal frames up to which the last frames are copied on the store's executor, while commits wait.
  private static var mostAtOnce: Int { 256 << 10 }

  /// Begins a background checkpoint, during which the store can commit, and returns the first part of its work for another thread.
  ///
  /// - Returns: The work to run on another thread, or `nil` if the checkpoint is complete or another one is running.
  func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try checkHealth()
    try checkFiles()
    guard folding == nil else { return nil }
    // Without a journal or without new commits, there are no journal frames to fold into the main file, so the whole checkpoint is made at
    // once.
    guard let journal, commit > main.header.commit else {
      try checkpoint()
      return nil
    }
    givenUp = nil
    // The draft of the next main file is in a box to which both threads have a reference. `giveUpFolding` takes the draft out of the box,
    // so that it is the only owner of the changes and need not copy them.
    let draft = TransferBox(draft())
    let work = BackgroundWork<MainFile> { work throws(RepositoryError) in
      guard let draft = draft.value else { throw .checkpointGivenUp }
      return try draft.write(work)
    }
    folding = FoldInProgress(part: .mainFile(work, draft), mark: journal.end)
    // The changes of later commits go into a new, empty dictionary, because the background thread reads the earlier changes in the draft at
    // the same time.
    changes = [:]
    paging.beginFold()
    return { work.run() }
  }

  /// Continues a background checkpoint after a part of its work has ended on another thread.
  ///
  /// - Returns: The next part of the work to run on another thread, or `nil` if the checkpoint is complete or was cancelled.
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
      // The draft's changes are freed on another thread, because freeing a large dictionary on the store's executor would delay the next
      // commit.
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
        // After the first round, at most eight more rounds of copying run on another thread while the store commits. Without a limit,
        // writers that append faster than a round copies could delay the checkpoint's end for ever.
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
        // the new journal. After a failed sync, `noted` stops all writing.
        giveUpFolding()
        throw noted(error)
      }
      self.folding = nil
      return nil
    }
  }

  /// Returns work that copies the old journal's frames from `mark` on, which the new main file lacks, into a new journal.
  ///
  /// - Parameter carried: The new journal that an earlier round of copying has begun, or `nil` in the first round. The first round creates
  ///   the new journal after making the main file's name durable.
  private func carryOver(
    _ carrier: JournalCarrier, from mark: Int, to carried: CarriedJournal? = nil, rounds: Int = 0
  ) -> (@Sendable () -> Void)? {
    guard let journal else { return nil }
    // The store's properties are read before the copying starts, because copying runs on another thread and only the executor may use the
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
      // The new journal continues only the new main file. The directory is synced first, because a power cut must not leave the old main
      // file beside the new journal.
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

  /// Space to allocate in the new journal behind the copied frames.
  ///
  /// The space is for the last frames, which are copied while commits wait, and for the next commits.
  private var room: JournalCarrier.Room {
    JournalCarrier.Room(chunk: tuning.journalChunk, count: journal.map { $0.end > Self.mostAtOnce } == true ? 2 * Self.mostAtOnce : 0)
  }

  /// Copies the last frames of the old journal to the new journal, and renames the new journal over the old one.
  ///
  /// Syncs the new journal only if its file had to grow, or if the new journal has an unsynced commit that was acknowledged as durable.
  /// Commits that were not acknowledged as durable become durable with the next sync of the journal.
  /// - Returns: A closure that makes the new journal's name durable.
  private func replaceJournal(
    _ old: JournalWriter, with carried: CarriedJournal, by carrier: JournalCarrier
  ) throws(RepositoryError) -> @Sendable () -> Void {
    let end = try carrier.carry(carried.sourceEnd..<old.end, to: carried.file, at: carried.end)
    let size = try carried.file.size()
    // Zero bytes must follow the last frame, because a reader reports a journal without these zero bytes as cut off.
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
      // The new journal has all frames of the old journal that the main file lacks, so an error of `close` is harmless. The old journal is
      // closed on a background thread, because the system frees the space of a large file slowly.
      do throws(RepositoryError) { try old.close() } catch {}
    }
  }

  /// Cancels a background checkpoint, and blocks until none of its work is running.
  func giveUpFolding() {
    guard let folding = folding.take() else { return }
    switch folding.part {
    case .mainFile(let work, let box):
      let unused = work.giveUp()
      paging.cancelFold()
      guard var draft = box.take() else { break }
      if let unused { draft.discard(unused) }
      // The draft's own reference to the changes is dropped first, so that merging does not copy the dictionary.
      var all = draft.changes
      draft.changes = [:]
      // If both dictionaries have a change of one record, the store's change is kept, because the draft's changes are of earlier commits.
      all.merge(changes) { $1 }
      changes = all
    case .journal(let work, _):
      if work.giveUp() != nil { isMainDurable = true }
      // The old journal still has every frame, so the unfinished new journal is discarded. If `discard` cannot remove the temporary file,
      // the next opening of the store removes it.
      FileReplacement(path: paths.journal, fileSystem: fileSystem).discard()
    case .name(let work, let old):
      // Background growth of the old journal opens its file by name. Background growth is stopped, because it could otherwise enlarge a
      // later journal with the same name and inode.
      old.stopGrowing()
      if work.giveUp() != nil { isJournalDurable = true }
      // If the sync of the directory did not run, the next durable commit syncs the directory. If the sync of the directory failed, no
      // later sync proves that the new journal's name is durable, so all writing stops.
      if let error = work.failure, !isJournalDurable, !error.isOfOpening { _ = noted(unsynced(error)) }
    }
  }
}

/// The state of a background checkpoint, during which the store can commit.
///
/// A background checkpoint first writes a new main file with all records up to one commit, and renames the file into place. The old journal
/// still has all commits since the old main file, so the old and the new main file recover to the same records with the old journal. The
/// checkpoint then copies the frames of later commits to a new journal, which replaces the old journal. Nearly all writing and syncing runs
/// on another thread while the store commits, including the syncs of the directory. A commit that depends on a sync of the directory is
/// acknowledged only after that sync. A file that a sync makes superfluous is removed only after the sync.
struct FoldInProgress: Sendable {
  enum Part: Sendable {
    case mainFile(BackgroundWork<MainFile>, TransferBox<MainFileDraft>)
    case journal(BackgroundWork<CarriedJournal>, JournalCarrier)
    /// The last part of the checkpoint: the sync of the directory that makes the new journal's name durable, and the replaced journal.
    case name(BackgroundWork<Void>, JournalWriter)
  }
  let part: Part
  /// Offset in the old journal of the first frame that the new main file, or an earlier round of copying, does not include.
  let mark: Int
  /// Number of further rounds of copying frames to the new journal, after the first round.
  var rounds = 0
}

/// A new journal with the frames that a background checkpoint has copied to it so far.
struct CarriedJournal: Sendable {
  let file: any OpenFile
  /// Offset in the old journal up to which frames were copied.
  let sourceEnd: Int
  /// Offset behind the last frame that was copied to the new journal.
  let end: Int
  /// Newest commit that is synced in the new journal.
  let commit: UInt64
}

/// A copier of frames (groups of commits) from a journal to the next journal, whose frame checksums have another seed.
struct JournalCarrier: Sendable {
  let source: any OpenFile
  let old: JournalHeader
  let new: JournalHeader
  /// Path of the old journal, for errors.
  let name: String

  /// Number of bytes of the old journal that are read at a time, unless a frame is larger.
  private static let pieceSize = 1 << 20

  /// Copies the complete frames in a range of the old journal to the new journal's file, with new checksums.
  ///
  /// - Parameter work: The background work that copies the frames, if any. Before each piece of the journal, the function checks whether
  ///   the background work was cancelled.
  /// - Returns: The offset behind the copied frames in the new journal's file.
  func carry(
    _ range: Range<Int>, to file: any OpenFile, at target: Int, _ work: BackgroundWork<CarriedJournal>? = nil
  ) throws(RepositoryError) -> Int {
    var (position, target) = (range.lowerBound, target)
    while position < range.upperBound {
      try work?.check()
      let head = [UInt8](try read(at: position, count: JournalFormat.frameHeaderSize))
      guard head.count == JournalFormat.frameHeaderSize else { throw damage(at: position) }
      // A frame that is larger than a piece must be read completely, because its checksum covers all its bytes.
      let size = max(Self.pieceSize, Self.size(ofFrameAt: 0, in: head))
      var bytes = [UInt8](try read(at: position, count: min(size, range.upperBound - position)))
      var end = 0
      while bytes.count - end >= JournalFormat.frameHeaderSize {
        let size = Self.size(ofFrameAt: end, in: bytes)
        // A piece of the journal may end within a frame. The incomplete frame at the end of a piece is read again with the next piece.
        guard end + size <= bytes.count else { break }
        guard reseal(&bytes, end..<(end + size)) else { throw damage(at: position + end) }
        end += size
      }
      // A damaged length can make the first frame longer than the rest of the journal, and then the loop would copy no frame and never end.
      guard end > 0 else { throw damage(at: position) }
      bytes.removeLast(bytes.count - end)
      try bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: target) }
      position += end
      target += end
    }
    return target
  }

  /// The space to allocate behind the last frame of the new journal.
  struct Room {
    /// Number of bytes of which the journal's size is a multiple.
    let chunk: Int
    /// Number of bytes of later frames for which the space must have room.
    let count: Int
  }

  /// Allocates space that reads as zero bytes behind the last frame of the new journal.
  ///
  /// Without zero bytes behind its last frame, the journal would look like a file that was cut off, and readers would throw `.corrupted`.
  func makeRoom(_ room: Room, in file: any OpenFile, at end: Int) throws(RepositoryError) {
    let size = (end + room.count + JournalFormat.terminatorSize + room.chunk - 1) / room.chunk * room.chunk
    try file.allocate(end..<size)
  }

  private static func size(ofFrameAt offset: Int, in bytes: [UInt8]) -> Int {
    let payload: UInt32 = bytes.withUnsafeBytes { $0.number(at: offset + 4) }
    return JournalFormat.frameHeaderSize + Int(payload) + JournalFormat.frameTrailerSize
  }

  /// Replaces a frame's checksums by checksums with the new journal's seed, or returns `false` for a frame that is damaged.
  private func reseal(_ bytes: inout [UInt8], _ frame: Range<Int>) -> Bool {
    let head = frame.lowerBound..<(frame.lowerBound + JournalFormat.frameHeaderSize - 4)
    let payload = (head.upperBound + 4)..<(frame.upperBound - JournalFormat.frameTrailerSize)
    for part in [head, payload] {
      let (found, before, after): (UInt32, UInt32, UInt32) = bytes.withUnsafeBytes {
        let part = UnsafeRawBufferPointer(rebasing: $0[part])
        return ($0.number(at: head.upperBound), CRC32C.checksum(part, seed: old.seed), CRC32C.checksum(part, seed: new.seed))
      }
      let stored: UInt32 = part == head ? found : bytes.withUnsafeBytes { $0.number(at: payload.upperBound) }
      // The old checksum is compared before it is replaced, because a new checksum over damaged bytes would hide the damage for ever.
      guard stored == before else { return false }
      withUnsafeBytes(of: after.littleEndian) { bytes.replaceSubrange(part.upperBound..<(part.upperBound + 4), with: $0) }
    }
    return true
  }

  private func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    do throws(RepositoryError) { return try source.read(at: offset, count: count) } catch { throw error.naming(name) }
  }

  private func damage(at offset: Int) -> RepositoryError {
    RepositoryError(.corrupted, "the journal was damaged while its store is open", file: name, offset: UInt64(offset))
  }
}
