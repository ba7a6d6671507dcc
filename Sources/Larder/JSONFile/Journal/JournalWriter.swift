internal import Dispatch
internal import Foundation

/// A writer that appends commits to a journal as frames (groups of commits, recovered all or none).
struct JournalWriter {
  let header: JournalHeader
  /// Path of the journal, which a rename may have given to the file after it was opened.
  private let name: String
  let file: any OpenFile
  private let seed: UInt32
  /// Device and inode of the journal's file, if the file system has them.
  let identity: FileIdentity?
  /// Unit in bytes in which space for the journal is allocated.
  private let chunk: Int
  /// Offset behind the last frame, where the next frame is written.
  private(set) var end: Int
  /// Size of the journal's file in bytes, or less after a failed write.
  private(set) var allocated: Int
  /// Newest commit in the journal.
  private(set) var lastCommit: UInt64
  /// Newest commit that was synced, or ordered by a write barrier.
  private(set) var durableThrough: UInt64
  /// True if ``durableThrough`` was only ordered by a barrier, so that a power cut may still lose that commit.
  private(set) var isOrderedOnly = false
  /// File system in which space is allocated before commits need it, or `nil` to allocate it only when a commit needs it.
  private let fileSystem: (any FileSystem)?
  /// Allocation of space on another thread, whose result is the new size of the file.
  private var growth: BackgroundWork<Int>?
  /// True if growth on another thread has failed, and the journal has not grown since.
  private var hasGrowthFailed = false
  /// Frame whose write has failed, and which could not be overwritten with zeros yet.
  private var brokenFrame: BrokenFrame?

  /// A frame whose write has failed, and a part of which may lie behind the last complete frame.
  private struct BrokenFrame {
    let size: Int
    /// Allocated size of the journal before space for the frame was added.
    let allocated: Int
  }

  /// Length of a journal in bytes from which on space is allocated on another thread, before a commit needs it.
  ///
  /// For a shorter journal, space is allocated only when a commit needs it, so that a journal of a few commits stays small.
  private static let growsAheadFrom = 256 << 10
  /// Largest step in bytes in which another thread grows the journal, unless a sixteenth of the journal is more.
  private static let growthLimit = 4 << 20

  /// Writes a new journal into an empty file and makes it durable.
  ///
  /// The caller then renames the file into place.
  static func create(_ file: any OpenFile, _ header: JournalHeader, chunk: Int) throws(RepositoryError) -> JournalReader.Contents {
    try header.bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: 0) }
    try file.allocate(JournalFormat.headerSize..<chunk)
    try file.sync()
    return JournalReader.Contents(header: header, lastCommit: header.base, end: JournalFormat.headerSize)
  }

  /// Creates a writer for a journal that was read and synced, and whose tail is clean.
  ///
  /// - Parameters:
  ///   - durableThrough: Newest commit that was synced or ordered, if that is not the last one.
  ///   - fileSystem: File system in which to grow the journal ahead of need, if any.
  init(
    continuing file: any OpenFile, _ contents: JournalReader.Contents, chunk: Int, name: String? = nil, durableThrough: UInt64? = nil,
    growingIn fileSystem: (any FileSystem)? = nil
  ) throws(RepositoryError) {
    self.fileSystem = fileSystem
    header = contents.header
    self.file = file
    self.name = name ?? file.path
    identity = try file.status().identity
    self.chunk = chunk
    seed = contents.header.seed
    end = contents.end
    allocated = try file.size()
    lastCommit = contents.lastCommit
    self.durableThrough = durableThrough ?? contents.lastCommit
  }

  /// Number of allocated bytes that only deletions may use, so that a store that has filled the disk can be cleared: a quarter of a chunk.
  private var reserve: Int { chunk / 4 }

  /// Size in bytes from which on a frame is written into unallocated space.
  ///
  /// Allocating the space of such a large frame may cost as much as writing the frame.
  private var unallocatedFrom: Int { 16 * chunk }

  /// Appends a batch as one frame, and makes it as durable as the batch demands.
  ///
  /// - Parameter work: Changes in memory that follow from the batch, which run during the sync of a large frame and after the sync of a
  ///   small one.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` if nothing of the batch is kept. `.outcomeUnknown` if a sync failed,
  ///   or if a broken write could not be overwritten. Nothing may be appended after `.outcomeUnknown`.
  mutating func append(_ batch: WriteBatch, beside work: () -> Void = {}) throws(RepositoryError) {
    // A part of an earlier failed frame is overwritten first, because the part would be damage between two frames.
    try takeBackBrokenFrame()
    let frame = JournalFrame.bytes(batch, durableThrough: durableThrough, seed: seed)
    // A batch with values leaves the reserve free, so that deletions still have room in the journal when the disk is full.
    let size = end + frame.count + JournalFormat.terminatorSize + (batch.records.contains { $0.value != nil } ? reserve : 0)
    try takeGrowth(isNeeded: size > allocated)
    let before = allocated
    if size > allocated { try allocate(size, leavingOut: frame.count < unallocatedFrom ? 0 : frame.count) }
    do throws(RepositoryError) {
      try frame.lending { bytes throws(RepositoryError) in try file.write(bytes, at: end) }
    } catch {
      brokenFrame = BrokenFrame(size: frame.count, allocated: before)
      do throws(RepositoryError) { try takeBackBrokenFrame() } catch let again {
        // A locked device also refuses to overwrite the written part of the frame with zeros. The part may stay, because no reader takes it
        // for a complete frame and the next write overwrites it.
        if again.code == .outcomeUnknown { throw again }
      }
      throw error.naming(name)
    }
    end += frame.count
    lastCommit = batch.commits.upperBound
    // Growth starts before the sync and runs beside it, so that the next commit has room already.
    growAhead()
    guard batch.durability != .buffered else { return work() }
    // `work` runs beside the sync only for large frames, because for a small frame starting a thread costs more than it saves.
    if frame.count >= unallocatedFrom { return try sync(beside: work) }
    if batch.durability == .ordered { try order() } else { try sync() }
    work()
  }

  /// Begins to grow the file on another thread, if the free space behind the last frame is smaller than a step.
  private mutating func growAhead() {
    guard let fileSystem, let identity, growth == nil, !hasGrowthFailed, end >= Self.growsAheadFrom else { return }
    let step = max(chunk, max(min(end / 2, Self.growthLimit), end / 16) / chunk * chunk)
    if allocated - end < step {
      growth = JournalGrowth.begin(of: name, identity: identity, range: allocated..<(allocated + step), in: fileSystem)
    }
  }

  /// Uses the space that growth on another thread has allocated.
  ///
  /// Blocks until the growth has ended only if the next frame needs the space.
  private mutating func takeGrowth(isNeeded: Bool) throws(RepositoryError) {
    guard let growth, isNeeded || growth.isDone else { return }
    self.growth = nil
    do throws(RepositoryError) {
      growth.run()
      allocated = try growth.result()
    } catch {
      // The growth syncs the same file as commits do, so its failed sync may have lost a commit's bytes. After any other failure the commit
      // grows the file itself.
      hasGrowthFailed = true
      if error.code == .outcomeUnknown { throw error }
      // A growth that fails half-way may have taken the last space of a full disk, so it is cut. If the cut fails, the next growth
      // overwrites that space.
      do throws(RepositoryError) { try file.cut(to: allocated) } catch {}
    }
  }

  /// Makes every commit in the journal durable.
  ///
  /// - Throws: `.outcomeUnknown` if the sync fails. The unsynced commits may be durable or lost, and even a second sync that succeeds would
  ///   not prove that they are durable.
  mutating func sync() throws(RepositoryError) {
    do throws(RepositoryError) { try file.sync() } catch { throw .unsyncedJournal(name, error) }
    (durableThrough, isOrderedOnly) = (lastCommit, false)
  }

  /// Orders every commit in the journal before all later writes, with a barrier.
  ///
  /// - Throws: `.outcomeUnknown`, as ``sync()``.
  private mutating func order() throws(RepositoryError) {
    do throws(RepositoryError) { try file.order() } catch { throw .unsyncedJournal(name, error) }
    (durableThrough, isOrderedOnly) = (lastCommit, true)
  }

  /// Syncs the journal on another thread, while `body` runs on this thread.
  private mutating func sync(beside body: () -> Void) throws(RepositoryError) {
    let work = BackgroundWork<Void> { [file] _ throws(RepositoryError) in try file.sync() }
    DispatchQueue.global(qos: .userInitiated).async { work.run() }
    body()
    // Waits for the sync, or runs it here if no thread was free.
    work.run()
    do throws(RepositoryError) { try work.result() } catch { throw .unsyncedJournal(name, error) }
    (durableThrough, isOrderedOnly) = (lastCommit, false)
  }

  /// Grows the file by space that reads as zero bytes, and syncs it.
  ///
  /// The file's new size is synced before a frame is written, so a crash cannot leave a file that ends in a frame. A journal that ends in a
  /// frame was therefore cut by another program, and readers treat it as damaged.
  /// - Parameter frame: Size of a frame whose space is not allocated, or 0. The space reads as zero bytes until the frame is written.
  private mutating func allocate(_ size: Int, leavingOut frame: Int) throws(RepositoryError) {
    // The file grows by a sixteenth of the journal at least, so that the cost of growing stays a constant share of the writes.
    let step = max(chunk, end / 16 / chunk * chunk)
    do throws(RepositoryError) {
      try extend(to: (size + step - 1) / step * step, from: max(allocated, end + frame))
    } catch {
      // On an almost full disk, the smallest growth that has room for the frame may still be possible.
      guard error.code == .full, step > chunk else { throw error }
      try extend(to: (size + chunk - 1) / chunk * chunk, from: max(allocated, end + frame))
    }
  }

  /// Grows the journal's file to `target`, allocates the space from `start` on, and syncs the file.
  private mutating func extend(to target: Int, from start: Int) throws(RepositoryError) {
    do throws(RepositoryError) {
      try file.allocate(start..<target)
    } catch {
      // An allocation that fails half-way may have taken the last space of a full disk from all programs, so the file is cut. If the cut
      // fails, the next attempt overwrites that space.
      do throws(RepositoryError) { try file.cut(to: allocated) } catch {}
      throw error.naming(name)
    }
    // The new size is synced before the frame is written. Without this sync, the frame's sync would have to write the size too, and a power
    // cut could shorten the file to end in the frame.
    try sync()
    allocated = target
    hasGrowthFailed = false
  }

  /// Cuts the zero bytes behind the last frame, except the terminator, so that other files can use their space.
  ///
  /// The terminator is the zero bytes that must follow the last frame. The next commit allocates new space.
  ///
  /// - Throws: `.outcomeUnknown` if the sync of growth on another thread has failed, `.inputOutput`.
  mutating func cutGrowth() throws(RepositoryError) {
    try takeBackBrokenFrame()
    // The end of growth on another thread is awaited, because growth that is still running would write behind the cut.
    try takeGrowth(isNeeded: true)
    let block = min(chunk, 4096)
    let size = (end + JournalFormat.terminatorSize + block - 1) / block * block
    do throws(RepositoryError) { try file.cut(to: size) } catch { throw error.naming(name) }
    allocated = min(allocated, size)
  }

  /// Allocates the reserve for deletions again, which ``cutGrowth()`` has cut.
  mutating func growAgain(to size: Int) throws(RepositoryError) {
    if size > allocated { try extend(to: size, from: allocated) }
  }

  /// Position behind the last frame.
  var position: JournalReader.Position { JournalReader.Position(commit: lastCommit, offset: end) }

  /// True if a part of a frame whose write has failed may lie behind the last complete frame.
  var hasBrokenFrame: Bool { brokenFrame != nil }

  /// Overwrites a part of a failed frame with zero bytes, so that it is no damage in front of the next frame.
  ///
  /// - Throws: `.protectedDataUnavailable` if the system refuses the write, as on a locked device. The next call tries again.
  ///   `.outcomeUnknown` after any other failure.
  mutating func takeBackBrokenFrame() throws(RepositoryError) {
    guard let broken = brokenFrame else { return }
    do throws(RepositoryError) {
      let isUnallocated = broken.size >= unallocatedFrom && broken.allocated < allocated
      if isUnallocated {
        // The start of the frame is zeroed before the cut, because readers treat a file that ends within a frame as cut.
        try takeBack(min(broken.size, broken.allocated - end))
        // The frame's space was never allocated, so a full disk may have no room for zeros and the space is cut. A file system that cannot
        // cut keeps the space, and the code below overwrites it with zeros.
        try file.cut(to: broken.allocated)
        do throws(RepositoryError) { allocated = try file.size() } catch { throw .unsyncedJournal(name, error) }
      }
      if !isUnallocated || allocated > broken.allocated { try takeBack(min(broken.size, allocated - end)) }
      brokenFrame = nil
    } catch {
      if error.code == .protectedDataUnavailable { throw error.naming(name) }
      throw RepositoryError(.outcomeUnknown, "a broken write could not be taken back", file: name, underlying: error)
    }
  }

  /// Overwrites the start of the space behind the last frame with zero bytes, and syncs them.
  ///
  /// Without the sync, a power cut may bring back a commit whose call has thrown, after the caller has acted on the error.
  private func takeBack(_ count: Int) throws(RepositoryError) {
    try [UInt8](repeating: 0, count: count).lending { bytes throws(RepositoryError) in try file.write(bytes, at: end) }
    do throws(RepositoryError) { try file.sync() } catch { throw .unsyncedJournal(name, error) }
  }

  /// Cancels growth on another thread, and blocks until the growth has ended.
  func stopGrowing() { _ = growth?.giveUp() }

  func close() throws(RepositoryError) {
    stopGrowing()
    try file.close()
  }
}

extension RepositoryError {
  /// Returns the error for a journal whose sync failed.
  ///
  /// Commits of the journal may be durable or lost, and even a second sync that succeeds would not prove that they are durable.
  static func unsyncedJournal(_ name: String, _ error: RepositoryError) -> RepositoryError {
    RepositoryError(.outcomeUnknown, "the journal could not be synced", file: name, underlying: error)
  }
}

/// Growth of a journal on another thread, beside commits, so that a commit seldom has to wait for its allocation and sync.
enum JournalGrowth {
  /// Number of bytes that one call allocates, so that a commit's write to the file waits for the allocation of this number at most.
  private static let pieceSize = 128 << 10

  /// Begins to allocate space behind a journal.
  ///
  /// - Parameter identity: Identity (device and inode) that the file at the path must have. The growth opens the file a second time,
  ///   because calls on the descriptor of the commits would make a commit wait.
  /// - Returns: The work, whose result is the new size of the journal. The work fails with `.outcomeUnknown` if the sync failed, and with
  ///   another error if the journal's frames and their sync are unaffected.
  static func begin(
    of name: String, identity: FileIdentity, range: Range<Int>, in fileSystem: any FileSystem
  ) -> BackgroundWork<Int> {
    let work = BackgroundWork<Int> { work throws(RepositoryError) in
      // A checkpoint may have renamed another journal to this path since the growth was requested.
      guard let file = try fileSystem.open(name, writable: true), try file.status().identity == identity else {
        throw RepositoryError(.dataMissing, "another file has the name of the journal", file: name)
      }
      for start in stride(from: range.lowerBound, to: range.upperBound, by: Self.pieceSize) {
        try work.check()
        try file.allocate(start..<min(start + Self.pieceSize, range.upperBound))
      }
      do throws(RepositoryError) { try file.sync() } catch { throw .unsyncedJournal(name, error) }
      return range.upperBound
    }
    DispatchQueue.global(qos: .userInitiated).async { work.run() }
    return work
  }
}
