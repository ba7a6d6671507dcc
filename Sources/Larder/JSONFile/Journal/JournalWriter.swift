internal import Dispatch
internal import Foundation

/// A writer that appends commits to a journal as frames.
struct JournalWriter {
  let header: JournalHeader
  /// Path of the journal, which a rename may have given it after it was opened.
  private let name: String
  let file: any OpenFile
  private let seed: UInt32
  /// Device and inode of the journal's file, if the file system has them.
  let identity: FileIdentity?
  /// Number of bytes that are allocated at a time.
  private let chunk: Int
  /// Offset for the next frame.
  private(set) var end: Int
  /// Size of the file in bytes, or less after a failed write.
  private(set) var allocated: Int
  /// Newest commit in the journal.
  private(set) var lastCommit: UInt64
  /// Newest commit that was synced, or ordered by a write barrier.
  private(set) var durableThrough: UInt64
  /// True if ``durableThrough`` was only ordered by a barrier, so that a power cut may still take it.
  private(set) var isOrderedOnly = false
  /// File system in which the journal is grown ahead of need, or `nil` to grow it only when needed.
  private let fileSystem: (any FileSystem)?
  private var growth: BackgroundWork<Int>?
  /// True if growing ahead has failed, and the journal has not grown since.
  private var hasGrowthFailed = false
  /// Frame that could not be written, and that could not be overwritten with zeros yet.
  private var brokenFrame: BrokenFrame?

  /// A frame that may lie partly behind the end.
  private struct BrokenFrame {
    let size: Int
    /// Allocated size before the frame.
    let allocated: Int
  }

  /// Length in bytes from which on the journal is grown ahead.
  ///
  /// A journal of a few commits stays small.
  private static let growsAheadFrom = 256 << 10
  /// Largest step of growing ahead in bytes, unless a sixteenth of the journal is more.
  private static let growthLimit = 4 << 20

  /// Writes a new journal into an empty file and makes it durable.
  ///
  /// The caller then renames it into place.
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
  /// To allocate it may cost as much as to write it.
  private var unallocatedFrom: Int { 16 * chunk }

  /// Appends a batch as one frame, and makes it as durable as the batch demands.
  ///
  /// - Parameter work: Changes to the memory that follow from the batch. They run beside the sync of a large frame.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` if nothing of the batch is kept. `.outcomeUnknown` if a sync failed,
  ///   or if a broken write could not be overwritten. Nothing may be appended then.
  mutating func append(_ batch: WriteBatch, beside work: () -> Void = {}) throws(RepositoryError) {
    // Otherwise the old part would be damage between two frames.
    try takeBackBrokenFrame()
    let frame = JournalFrame.bytes(batch, durableThrough: durableThrough, seed: seed)
    // A batch with values leaves the reserve free, so that a full disk can still be cleared.
    let size = end + frame.count + JournalFormat.terminatorSize + (batch.records.contains { $0.value != nil } ? reserve : 0)
    try takeGrowth(isNeeded: size > allocated)
    let before = allocated
    if size > allocated { try allocate(size, leavingOut: frame.count < unallocatedFrom ? 0 : frame.count) }
    do throws(RepositoryError) {
      try frame.lending { bytes throws(RepositoryError) in try file.write(bytes, at: end) }
    } catch {
      brokenFrame = BrokenFrame(size: frame.count, allocated: before)
      do throws(RepositoryError) { try takeBackBrokenFrame() } catch let again {
        // A locked device refuses the zeros too. The part is no whole frame, and the next write overwrites it.
        if again.code == .outcomeUnknown { throw again }
      }
      throw error.naming(name)
    }
    end += frame.count
    lastCommit = batch.commits.upperBound
    // Beside the sync that follows, so that the next commit has room already.
    growAhead()
    guard batch.durability != .buffered else { return work() }
    // Only for large frames: starting a thread costs more than the work for a small one saves.
    if frame.count >= unallocatedFrom { return try sync(beside: work) }
    if batch.durability == .ordered { try order() } else { try sync() }
    work()
  }

  /// Begins to grow the file on another thread, if the free space is smaller than a step.
  private mutating func growAhead() {
    guard let fileSystem, let identity, growth == nil, !hasGrowthFailed, end >= Self.growsAheadFrom else { return }
    let step = max(chunk, max(min(end / 2, Self.growthLimit), end / 16) / chunk * chunk)
    if allocated - end < step { growth = JournalGrowth.begin(of: name, identity, allocated..<(allocated + step), fileSystem) }
  }

  /// Uses the space that growing ahead has made.
  ///
  /// Waits for it only if it is needed.
  private mutating func takeGrowth(isNeeded: Bool) throws(RepositoryError) {
    guard let growth, isNeeded || growth.isDone else { return }
    self.growth = nil
    do throws(RepositoryError) {
      growth.run()
      allocated = try growth.result()
    } catch {
      // A failed sync may be that of a commit, which wrote to the same file. After any other failure the commit grows the file itself.
      hasGrowthFailed = true
      if error.code == .outcomeUnknown { throw error }
      // A part of the growth takes the last space of a full disk. If it cannot be cut, the next growth overwrites it.
      do throws(RepositoryError) { try file.cut(to: allocated) } catch {}
    }
  }

  /// Makes every commit in the journal durable.
  /// - Throws: `.outcomeUnknown`: the commits may be durable or not, and a second sync would not show it.
  mutating func sync() throws(RepositoryError) {
    do throws(RepositoryError) { try file.sync() } catch { throw .unsyncedJournal(name, error) }
    (durableThrough, isOrderedOnly) = (lastCommit, false)
  }

  /// Orders every commit in the journal before all later writes, with a barrier.
  /// - Throws: `.outcomeUnknown`, as ``sync()``.
  private mutating func order() throws(RepositoryError) {
    do throws(RepositoryError) { try file.order() } catch { throw .unsyncedJournal(name, error) }
    (durableThrough, isOrderedOnly) = (lastCommit, true)
  }

  /// Makes every commit durable on another thread, while a body runs on this one.
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
  /// A frame is only written into space that survives a crash. So a file that ends in a frame was cut by something else.
  /// - Parameter frame: Size of a frame whose space is not allocated. It reads as zero bytes until the frame is written.
  private mutating func allocate(_ size: Int, leavingOut frame: Int) throws(RepositoryError) {
    // A sixteenth of the journal at least, so that the cost of growing stays a constant share of the writes.
    let step = max(chunk, end / 16 / chunk * chunk)
    do throws(RepositoryError) {
      try extend(to: (size + step - 1) / step * step, from: max(allocated, end + frame))
    } catch {
      // On an almost full disk the least that the frame needs may still have room.
      guard error.code == .full, step > chunk else { throw error }
      try extend(to: (size + chunk - 1) / chunk * chunk, from: max(allocated, end + frame))
    }
  }

  /// Grows the file to a size, and allocates the space from an offset on.
  private mutating func extend(to target: Int, from start: Int) throws(RepositoryError) {
    do throws(RepositoryError) {
      try file.allocate(start..<target)
    } catch {
      // A part of it takes the last space of a full disk from all programs. If it cannot be cut, the next attempt overwrites it.
      do throws(RepositoryError) { try file.cut(to: allocated) } catch {}
      throw error.naming(name)
    }
    // Before the frame: its sync need not write the new size, and a power cut cannot shorten the file to end in it.
    try sync()
    allocated = target
    hasGrowthFailed = false
  }

  /// Returns the zero bytes behind the last frame to the system, except the terminator.
  ///
  /// The next commit allocates new ones.
  ///
  /// - Throws: `.outcomeUnknown` if growing ahead has failed to sync, `.inputOutput`.
  mutating func cutGrowth() throws(RepositoryError) {
    try takeBackBrokenFrame()
    // Growth that is still running would write behind the cut.
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

  /// True if a part of a frame may lie behind the end.
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
        // The start of the frame is zeroed first: readers treat a file that ends within a frame as cut.
        try takeBack(min(broken.size, broken.allocated - end))
        // A full disk may not have the frame's space at all. A file system that cannot cut still has it.
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
  /// Without the sync a power cut may bring back a refused commit, after its caller has cleaned up behind it.
  private func takeBack(_ count: Int) throws(RepositoryError) {
    try [UInt8](repeating: 0, count: count).lending { bytes throws(RepositoryError) in try file.write(bytes, at: end) }
    do throws(RepositoryError) { try file.sync() } catch { throw .unsyncedJournal(name, error) }
  }

  /// Cancels growing ahead, and waits for its end.
  func stopGrowing() { _ = growth?.giveUp() }

  func close() throws(RepositoryError) {
    stopGrowing()
    try file.close()
  }
}

extension RepositoryError {
  /// Returns the error for a journal whose sync failed.
  ///
  /// Its commits may be durable or not, and a second sync would not show it.
  static func unsyncedJournal(_ name: String, _ error: RepositoryError) -> RepositoryError {
    RepositoryError(.outcomeUnknown, "the journal could not be synced", file: name, underlying: error)
  }
}

/// Growth of a journal beside commits, allocated and synced so that no commit has to wait for it.
enum JournalGrowth {
  /// Number of bytes allocated at once, for which a commit waits at most.
  private static let pieceSize = 128 << 10

  /// Begins to allocate space behind a journal.
  ///
  /// - Parameter identity: Identity that the file must have. The file is opened again, because a commit would wait for calls on its own
  ///   descriptor.
  /// - Returns: The work, whose result is the new size of the journal. It fails with `.outcomeUnknown` if the sync failed, and with another
  ///   error if the journal is unchanged.
  static func begin(of name: String, _ identity: FileIdentity, _ range: Range<Int>, _ fileSystem: any FileSystem) -> BackgroundWork<Int> {
    let work = BackgroundWork<Int> { work throws(RepositoryError) in
      // A checkpoint may have renamed another journal into place.
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
