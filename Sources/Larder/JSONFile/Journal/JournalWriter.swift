internal import Dispatch
internal import Foundation

/// A writer that appends commits to a journal as frames (groups of commits that are recovered all or none).
struct JournalWriter {
  let header: JournalHeader
  /// Path of the journal, which may differ from the path at which the file was opened, because the file may have been renamed.
  private let name: String
  let file: any OpenFile
  private let seed: UInt32
  /// Device and inode of the journal's file, or `nil` if the file system has none.
  let identity: FileIdentity?
  /// Unit in bytes in which space for the journal is allocated.
  private let chunk: Int
  /// Offset behind the journal's last frame, at which the next frame is written.
  private(set) var end: Int
  /// Size in bytes of the usable part of the journal's file, which may be larger while it grows or after a failed growth.
  private(set) var allocated: Int
  /// Newest commit in the journal.
  private(set) var lastCommit: UInt64
  /// Newest commit that was synced, or ordered by a write barrier.
  private(set) var durableThrough: UInt64
  /// True if the commit ``durableThrough`` was only ordered by a write barrier, so that a power cut may still lose it.
  private(set) var isOrderedOnly = false
  /// File system in which space is allocated before commits need it, or `nil` to allocate space only when a commit needs it.
  private let fileSystem: (any FileSystem)?
  /// Running or finished allocation of space on another thread, whose result is the new size of the file.
  private var growth: BackgroundWork<Int>?
  /// True if an allocation of space on another thread has failed, and the journal has not grown since.
  private var hasGrowthFailed = false
  /// Frame whose write has failed, and which was not yet overwritten with zeros.
  private var brokenFrame: BrokenFrame?

  /// A frame whose write has failed, so that a part of it may lie behind the last complete frame.
  private struct BrokenFrame {
    let size: Int
    /// Allocated size of the journal before space for the frame was added.
    let allocated: Int
  }

  /// Length in bytes above which a journal grows on another thread, before a commit needs the space.
  ///
  /// For a shorter journal, space is allocated only when a commit needs it, so that a journal of a few commits stays small.
  private static let growsAheadFrom = 256 << 10
  /// Largest number of bytes by which another thread grows the journal at a time, unless a sixteenth of the journal is more.
  private static let growthLimit = 4 << 20

  /// Writes a new journal without commits into an empty file, and syncs the file.
  ///
  /// The caller renames the new journal into place.
  static func create(_ file: any OpenFile, _ header: JournalHeader, chunk: Int) throws(RepositoryError) -> JournalReader.Contents {
    try header.bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: 0) }
    try file.allocate(JournalFormat.headerSize..<chunk)
    try file.sync()
    return JournalReader.Contents(header: header, lastCommit: header.base, end: JournalFormat.headerSize)
  }

  /// Creates a writer that continues an existing journal, which has only zero bytes behind its last frame.
  ///
  /// - Parameters:
  ///   - durableThrough: Newest commit that was synced or ordered, or `nil` if that is the last commit in the journal.
  ///   - fileSystem: File system in which the journal grows before a commit needs the space, or `nil` to grow it only when a commit needs
  ///     the space.
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

  /// Number of allocated bytes that only deletions may use, so that a store on a full disk can still delete: a quarter of a chunk.
  private var reserve: Int { chunk / 4 }

  /// Size in bytes from which on a frame is written without allocating its space first.
  ///
  /// Allocating the space of a large frame may cost as much as writing the frame.
  private var unallocatedFrom: Int { 16 * chunk }

  /// Appends a batch as one frame, and makes the frame as durable as the batch's `durability` demands.
  ///
  /// - Parameter work: Closure that makes the batch's changes in memory. The closure runs during the sync of a large frame, after the sync
  ///   of a small frame, and without a sync for a `.buffered` batch.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` if nothing of the batch was committed. `.outcomeUnknown` if a sync
  ///   failed, or if a frame whose write has failed could not be overwritten. Nothing may be appended after `.outcomeUnknown`.
  mutating func append(_ batch: WriteBatch, beside work: () -> Void = {}) throws(RepositoryError) {
    // A part of a frame whose write has failed is overwritten first, because it would otherwise lie between two frames as damage.
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
        // A locked device also refuses to overwrite the written part of the frame with zeros. The written part may stay, because no reader
        // accepts an incomplete frame and the next write overwrites it.
        if again.code == .outcomeUnknown { throw again }
      }
      throw error.naming(name)
    }
    end += frame.count
    lastCommit = batch.commits.upperBound
    // The journal starts to grow before the sync and grows beside it, so that the next commit has room already.
    growAhead()
    guard batch.durability != .buffered else { return work() }
    // `work` runs beside the sync only for large frames, because starting a thread for a small frame costs more time than it saves.
    if frame.count >= unallocatedFrom { return try sync(beside: work) }
    if batch.durability == .ordered { try order() } else { try sync() }
    work()
  }

  /// Begins to grow a long journal on another thread, if the free space behind the last frame is smaller than one growth step.
  private mutating func growAhead() {
    guard let fileSystem, let identity, growth == nil, !hasGrowthFailed, end >= Self.growsAheadFrom else { return }
    let step = max(chunk, max(min(end / 2, Self.growthLimit), end / 16) / chunk * chunk)
    if allocated - end < step {
      growth = JournalGrowth.begin(of: name, identity: identity, range: allocated..<(allocated + step), in: fileSystem)
    }
  }

  /// Takes into use the space that another thread has allocated.
  ///
  /// If the caller needs the space, the call blocks until the allocation on the other thread has ended.
  private mutating func takeGrowth(isNeeded: Bool) throws(RepositoryError) {
    guard let growth, isNeeded || growth.isDone else { return }
    self.growth = nil
    do throws(RepositoryError) {
      growth.run()
      allocated = try growth.result()
    } catch {
      // The other thread syncs the same file as commits do, so a failed sync on that thread may have lost a commit's bytes. After any other
      // failure the commit allocates the space itself.
      hasGrowthFailed = true
      if error.code == .outcomeUnknown { throw error }
      // An allocation that fails half-way may have taken the last space of a full disk, so the allocated space is cut off. If the allocated
      // space could not be cut off, the next allocation overwrites it.
      do throws(RepositoryError) { try file.cut(to: allocated) } catch {}
    }
  }

  /// Makes every commit in the journal durable.
  ///
  /// - Throws: `.outcomeUnknown` if the sync fails. After a failed sync, the unsynced commits may be durable or lost, and even a second
  ///   sync that succeeds would not prove that they are durable.
  mutating func sync() throws(RepositoryError) {
    do throws(RepositoryError) { try file.sync() } catch { throw .unsyncedJournal(name, error) }
    (durableThrough, isOrderedOnly) = (lastCommit, false)
  }

  /// Orders every commit in the journal before all later writes, by a write barrier.
  ///
  /// - Throws: `.outcomeUnknown`, as ``sync()``.
  private mutating func order() throws(RepositoryError) {
    do throws(RepositoryError) { try file.order() } catch { throw .unsyncedJournal(name, error) }
    (durableThrough, isOrderedOnly) = (lastCommit, true)
  }

  /// Syncs the journal on another thread, while `body` runs on the current thread.
  private mutating func sync(beside body: () -> Void) throws(RepositoryError) {
    let work = BackgroundWork<Void> { [file] _ throws(RepositoryError) in try file.sync() }
    DispatchQueue.global(qos: .userInitiated).async { work.run() }
    body()
    // `run()` waits for the sync, or syncs on the current thread if no other thread has begun the sync.
    work.run()
    do throws(RepositoryError) { try work.result() } catch { throw .unsyncedJournal(name, error) }
    (durableThrough, isOrderedOnly) = (lastCommit, false)
  }

  /// Grows the journal's file to at least `size` bytes, with new space that reads as zero bytes, and syncs the file.
  ///
  /// The file's new size is synced before a frame is written, so a crash cannot leave a file that ends within a frame. A journal that ends
  /// within a frame was therefore cut by another program, and readers report it as damaged.
  /// - Parameter frame: Size of a frame whose space is not allocated, or 0. Unallocated space within the file reads as zero bytes until the
  ///   frame is written.
  private mutating func allocate(_ size: Int, leavingOut frame: Int) throws(RepositoryError) {
    // The file grows by at least about a sixteenth of the journal, so that the cost of growing stays a constant share of the cost of
    // writing.
    let step = max(chunk, end / 16 / chunk * chunk)
    do throws(RepositoryError) {
      try extend(to: (size + step - 1) / step * step, from: max(allocated, end + frame))
    } catch {
      // On an almost full disk, allocating the smallest space that has room for the frame may still be possible.
      guard error.code == .full, step > chunk else { throw error }
      try extend(to: (size + chunk - 1) / chunk * chunk, from: max(allocated, end + frame))
    }
  }

  /// Grows the journal's file to `target`, allocates the space from `start` on, and syncs the file.
  private mutating func extend(to target: Int, from start: Int) throws(RepositoryError) {
    do throws(RepositoryError) {
      try file.allocate(start..<target)
    } catch {
      // An allocation that fails half-way may have taken the last space of a full disk from all programs, so the file is cut. If the file
      // could not be cut, the next allocation overwrites the space behind its former end.
      do throws(RepositoryError) { try file.cut(to: allocated) } catch {}
      throw error.naming(name)
    }
    // The new size is synced before a frame is written. If only the frame's sync wrote the size, a power cut could leave a file that ends
    // within the frame.
    try sync()
    allocated = target
    hasGrowthFailed = false
  }

  /// Cuts off the zero bytes behind the last frame, except the terminator, so that other files can use the space.
  ///
  /// The terminator is the four zero bytes that must follow the last frame. The size of the journal's file is rounded up to a block of at
  /// most 4,096 bytes. The next commit allocates new space if it needs more.
  ///
  /// - Throws: `.outcomeUnknown` if the sync of an allocation on another thread has failed, `.inputOutput`.
  mutating func cutGrowth() throws(RepositoryError) {
    try takeBackBrokenFrame()
    // `takeGrowth` waits for an allocation on another thread, because an allocation that is still running would extend the file again after
    // the cut.
    try takeGrowth(isNeeded: true)
    let block = min(chunk, 4096)
    let size = (end + JournalFormat.terminatorSize + block - 1) / block * block
    do throws(RepositoryError) { try file.cut(to: size) } catch { throw error.naming(name) }
    allocated = min(allocated, size)
  }

  /// Allocates the reserve for deletions again, which ``cutGrowth()`` has cut off.
  mutating func growAgain(to size: Int) throws(RepositoryError) {
    if size > allocated { try extend(to: size, from: allocated) }
  }

  /// Position behind the journal's last frame.
  var position: JournalReader.Position { JournalReader.Position(commit: lastCommit, offset: end) }

  /// True if a part of a frame whose write has failed may lie behind the last complete frame.
  var hasBrokenFrame: Bool { brokenFrame != nil }

  /// Overwrites the written part of a frame whose write has failed with zero bytes, so that no damage lies before the next frame.
  ///
  /// - Throws: `.protectedDataUnavailable` if the system refuses the write, as on a locked device. The next call of `takeBackBrokenFrame()`
  ///   tries again. `.outcomeUnknown` after any other failure.
  mutating func takeBackBrokenFrame() throws(RepositoryError) {
    guard let broken = brokenFrame else { return }
    do throws(RepositoryError) {
      let isUnallocated = broken.size >= unallocatedFrom && broken.allocated < allocated
      if isUnallocated {
        // The start of the frame is zeroed before the file is cut, because readers report a file that ends within a frame as damaged.
        try takeBack(min(broken.size, broken.allocated - end))
        // The frame's space was never allocated, so a full disk may have no room for zeros, and the file is cut instead. On a file system
        // that cannot cut a file, the frame's space is overwritten with zeros after all.
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

  /// Overwrites `count` bytes behind the last frame with zero bytes, and syncs the file.
  ///
  /// Without a sync of the zero bytes, a power cut may bring back a commit whose call has thrown, after the caller has acted on the error.
  private func takeBack(_ count: Int) throws(RepositoryError) {
    try [UInt8](repeating: 0, count: count).lending { bytes throws(RepositoryError) in try file.write(bytes, at: end) }
    do throws(RepositoryError) { try file.sync() } catch { throw .unsyncedJournal(name, error) }
  }

  /// Cancels an allocation of space on another thread, and blocks until it has ended.
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

/// Growth of a journal on another thread, so that a commit seldom has to wait until space is allocated and the new size is synced.
enum JournalGrowth {
  /// Number of bytes that are allocated by one system call, because a commit's write to the file may wait for the running call.
  private static let pieceSize = 128 << 10

  /// Begins to allocate space behind the frames of a journal on another thread.
  ///
  /// - Parameter identity: Identity (device and inode) that the file at the path must have. The file is opened a second time, because
  ///   system calls on the same descriptor could make a commit wait.
  /// - Returns: The background work, whose result is the new size of the journal. The background work fails with `.outcomeUnknown` if its
  ///   sync failed, and with another error if the journal's frames are unaffected.
  static func begin(
    of name: String, identity: FileIdentity, range: Range<Int>, in fileSystem: any FileSystem
  ) -> BackgroundWork<Int> {
    let work = BackgroundWork<Int> { work throws(RepositoryError) in
      // A checkpoint may have renamed another journal to the path since the growth of the journal began.
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
