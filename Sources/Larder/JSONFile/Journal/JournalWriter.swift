internal import Dispatch
internal import Foundation

/// A writer that appends commits to a journal.
struct JournalWriter {
  let header: JournalHeader
  /// The name of the journal, which it may have got after it was opened.
  private let name: String
  let file: any OpenFile
  private let seed: UInt32
  /// The identity of the file.
  let identity: FileIdentity?
  /// The number of bytes that are allocated at a time.
  private let chunk: Int
  /// The offset for the next frame.
  private(set) var end: Int
  /// The size of the file, in bytes, or less after a failed write.
  private(set) var allocated: Int
  /// The newest commit in the journal.
  private(set) var lastCommit: UInt64
  /// The newest commit that was synced or ordered.
  private(set) var durableThrough: UInt64
  /// Whether ``durableThrough`` was ordered and not synced, so that a power cut may still take it.
  private(set) var isOrderedOnly = false
  /// The file system in which the journal is grown before that is needed; `nil` to grow it only then.
  private let fileSystem: (any FileSystem)?
  private var growth: BackgroundWork<Int>?
  /// Whether growing ahead has failed, and the journal has not grown since.
  private var hasGrowthFailed = false
  /// The frame that could not be written, and that the system did not let be taken back yet.
  private var brokenFrame: BrokenFrame?

  /// A frame of which there may be a part behind the end.
  private struct BrokenFrame {
    let size: Int
    /// The allocated size before it.
    let allocated: Int
  }

  /// The length from which on the journal is grown ahead, in bytes: one of a few commits stays small.
  private static let growsAheadFrom = 256 << 10
  /// The most that it is grown by at once, unless a sixteenth of it is more, in bytes.
  private static let growthLimit = 4 << 20

  /// Writes a new journal into an empty file, makes it durable; it still has to be renamed into place.
  static func create(_ file: any OpenFile, _ header: JournalHeader, chunk: Int) throws(RepositoryError) -> JournalReader.Contents {
    try header.bytes.lending { bytes throws(RepositoryError) in try file.write(bytes, at: 0) }
    try file.allocate(JournalFormat.headerSize..<chunk)
    try file.sync()
    return JournalReader.Contents(header: header, lastCommit: header.base, end: JournalFormat.headerSize)
  }

  /// Continues a journal that was read and synced, and whose tail is clean.
  ///
  /// - Parameters:
  ///   - durableThrough: The newest commit that was synced or ordered, where that is not the last one.
  ///   - fileSystem: Where the journal is grown ahead, if it is.
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

  /// The bytes of the allocated space that only deletions may use, so that a store that has filled the disk can be cleared: a quarter of a
  /// chunk.
  private var reserve: Int { chunk / 4 }

  /// The length of a frame from which on no space is allocated where it goes, which may cost as much as the frame itself.
  private var unallocatedFrom: Int { 16 * chunk }

  /// Appends a batch.
  ///
  /// - Parameter work: What follows from the batch in memory. It is done beside the sync of a large frame.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` when nothing of the batch is kept; `.outcomeUnknown` when a sync
  ///   failed, or when a broken write could not be taken back: nothing may be appended any more.
  mutating func append(_ batch: WriteBatch, beside work: () -> Void = {}) throws(RepositoryError) {
    try takeBackBrokenFrame()
    let frame = JournalFrame.bytes(batch, durableThrough: durableThrough, seed: seed)
    let size = end + frame.count + JournalFormat.terminatorSize + (batch.records.contains { $0.value != nil } ? reserve : 0)
    try takeGrowth(isNeeded: size > allocated)
    let before = allocated
    if size > allocated { try allocate(size, leavingOut: frame.count < unallocatedFrom ? 0 : frame.count) }
    do throws(RepositoryError) {
      try frame.lending { bytes throws(RepositoryError) in try file.write(bytes, at: end) }
    } catch {
      brokenFrame = BrokenFrame(size: frame.count, allocated: before)
      do throws(RepositoryError) { try takeBackBrokenFrame() } catch let again {
        // A device that was locked refuses this, too: what was written of the frame is no whole one, and the next write takes it back.
        if again.code == .outcomeUnknown { throw again }
      }
      throw error.naming(name)
    }
    end += frame.count
    lastCommit = batch.commits.upperBound
    growAhead()
    guard batch.durability != .buffered else { return work() }
    if frame.count >= unallocatedFrom { return try sync(beside: work) }
    if batch.durability == .ordered { try order() } else { try sync() }
    work()
  }

  /// Begins to grow the file while there is still room for a step.
  private mutating func growAhead() {
    guard let fileSystem, let identity, growth == nil, !hasGrowthFailed, end >= Self.growsAheadFrom else { return }
    let step = max(chunk, max(min(end / 2, Self.growthLimit), end / 16) / chunk * chunk)
    if allocated - end < step { growth = JournalGrowth.begin(of: name, identity, allocated..<(allocated + step), fileSystem) }
  }

  /// Takes the room into use that was made ahead, once it is there; waits for it where it is needed.
  private mutating func takeGrowth(isNeeded: Bool) throws(RepositoryError) {
    guard let growth, isNeeded || growth.isDone else { return }
    self.growth = nil
    do throws(RepositoryError) {
      growth.run()
      allocated = try growth.result()
    } catch {
      // A failed sync may have been that of a commit. Any other failure is that of the commit that needs the room, and tries again.
      hasGrowthFailed = true
      if error.code == .outcomeUnknown { throw error }
      // What was written of it takes the last space of a full disk; if it stays, it is overwritten.
      do throws(RepositoryError) { try file.cut(to: allocated) } catch {}
    }
  }

  /// Makes everything in the journal durable.
  /// - Throws: `.outcomeUnknown`: what was written is there or not, and a second sync would not tell.
  mutating func sync() throws(RepositoryError) {
    do throws(RepositoryError) { try file.sync() } catch { throw .unsyncedJournal(name, error) }
    (durableThrough, isOrderedOnly) = (lastCommit, false)
  }

  /// Puts everything in the journal in order before what is written later.
  /// - Throws: `.outcomeUnknown`, as ``sync()``.
  private mutating func order() throws(RepositoryError) {
    do throws(RepositoryError) { try file.order() } catch { throw .unsyncedJournal(name, error) }
    (durableThrough, isOrderedOnly) = (lastCommit, true)
  }

  /// Makes everything in the journal durable on another thread, while a body runs on this one.
  private mutating func sync(beside body: () -> Void) throws(RepositoryError) {
    let work = BackgroundWork<Void> { [file] _ throws(RepositoryError) in try file.sync() }
    DispatchQueue.global(qos: .userInitiated).async { work.run() }
    body()
    // Waits for its end, or does it here where no thread was free.
    work.run()
    do throws(RepositoryError) { try work.result() } catch { throw .unsyncedJournal(name, error) }
    (durableThrough, isOrderedOnly) = (lastCommit, false)
  }

  /// Grows the file by space that reads as zero bytes and syncs it, so that a frame is always written into space that survives: a file
  /// that ends in a frame was cut, and not by a crash.
  ///
  /// - Parameter frame: The length of a frame for which the space is left out: it reads as zero bytes until the frame is there.
  private mutating func allocate(_ size: Int, leavingOut frame: Int) throws(RepositoryError) {
    // A sixteenth of the journal at least, so that growing costs a constant share.
    let step = max(chunk, end / 16 / chunk * chunk)
    do throws(RepositoryError) {
      try extend(to: (size + step - 1) / step * step, from: max(allocated, end + frame))
    } catch {
      guard error.code == .full, step > chunk else { throw error }
      try extend(to: (size + chunk - 1) / chunk * chunk, from: max(allocated, end + frame))
    }
  }

  /// Grows the file, allocating the space from an offset on.
  private mutating func extend(to target: Int, from start: Int) throws(RepositoryError) {
    do throws(RepositoryError) {
      try file.allocate(start..<target)
    } catch {
      // What there is of it takes the last space of a full disk from all programs; if it stays, it is overwritten by the next attempt.
      do throws(RepositoryError) { try file.cut(to: allocated) } catch {}
      throw error.naming(name)
    }
    try sync()
    allocated = target
    hasGrowthFailed = false
  }

  /// Gives the zero bytes behind the last frame back to the system, all but those that must be there; the next commit allocates new ones.
  ///
  /// - Throws: `.outcomeUnknown` when growing ahead has failed to sync; `.inputOutput`.
  mutating func cutGrowth() throws(RepositoryError) {
    try takeBackBrokenFrame()
    try takeGrowth(isNeeded: true)
    let block = min(chunk, 4096)
    let size = (end + JournalFormat.terminatorSize + block - 1) / block * block
    do throws(RepositoryError) { try file.cut(to: size) } catch { throw error.naming(name) }
    allocated = min(allocated, size)
  }

  /// Allocates again what was cut, for the deletions that it is kept for.
  mutating func growAgain(to size: Int) throws(RepositoryError) {
    if size > allocated { try extend(to: size, from: allocated) }
  }

  /// The place behind the last frame.
  var position: JournalReader.Position { JournalReader.Position(commit: lastCommit, offset: end) }

  /// Whether there may be a part of a frame behind the end.
  var hasBrokenFrame: Bool { brokenFrame != nil }

  /// Takes back what there may be of a frame that could not be written, so that the next frame is not damage in the middle.
  ///
  /// - Throws: `.protectedDataUnavailable` when the system refuses the write, as on a locked device; the next call tries again.
  ///   `.outcomeUnknown` after any other failure.
  mutating func takeBackBrokenFrame() throws(RepositoryError) {
    guard let broken = brokenFrame else { return }
    do throws(RepositoryError) {
      let isUnallocated = broken.size >= unallocatedFrom && broken.allocated < allocated
      if isUnallocated {
        // Its beginning first: a file that ends within a frame was cut, and not by a crash.
        try takeBack(min(broken.size, broken.allocated - end))
        // The space that it was to be written into, which a full disk may not have. A file system that cannot cut has it still.
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

  /// Overwrites a frame that was not written whole with zero bytes, and syncs them.
  ///
  /// Without the sync a power cut may bring back a commit that was refused, after its caller has cleaned up behind it.
  private func takeBack(_ count: Int) throws(RepositoryError) {
    try [UInt8](repeating: 0, count: count).lending { bytes throws(RepositoryError) in try file.write(bytes, at: end) }
    do throws(RepositoryError) { try file.sync() } catch { throw .unsyncedJournal(name, error) }
  }

  /// Stops what is under way to grow it, and waits for the end of that.
  func stopGrowing() { _ = growth?.giveUp() }

  func close() throws(RepositoryError) {
    stopGrowing()
    try file.close()
  }
}

extension RepositoryError {
  /// Returns the error for a journal whose sync has failed: what was written is there or not, and a second sync would not tell.
  static func unsyncedJournal(_ name: String, _ error: RepositoryError) -> RepositoryError {
    RepositoryError(.outcomeUnknown, "the journal could not be synced", file: name, underlying: error)
  }
}

/// Space behind a journal, allocated and synced beside commits, so that no commit has to do it.
enum JournalGrowth {
  /// The number of bytes allocated at once, which a commit waits for at most.
  private static let pieceSize = 128 << 10

  /// Begins to allocate.
  ///
  /// - Parameter identity: Which file must have the name; it is opened again, because a commit waits for what is done with its own
  ///   descriptor.
  /// - Returns: The work, which makes the size that the journal has then. It fails with `.outcomeUnknown` when the sync failed, with
  ///   something else when the journal is as it was.
  static func begin(of name: String, _ identity: FileIdentity, _ range: Range<Int>, _ fileSystem: any FileSystem) -> BackgroundWork<Int> {
    let work = BackgroundWork<Int> { work throws(RepositoryError) in
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
