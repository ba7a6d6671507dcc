// JSONFile/ keeps a store in one JSON document that people can read, and a journal (an append-only log) beside it while the store is open.
// Invariant: document ("main file") and journal together hold every acknowledged commit, at every moment of every operation.
// Called through StorageBackend.

public import Foundation
internal import Synchronization

/// A backend that keeps a store in one JSON document, valid and complete at all times, with a journal beside it while the store is open.
///
/// ```swift
/// let store = try await Store.open(JSONFileBackend(file: url))
/// let spots = try await store.repository(RepositorySchema<Spot>("spots"))
/// ```
///
/// If your store has one repository, ``LocalRepository/init(jsonFile:schema:options:)`` does the same in one line. Prefer SQLite if several
/// processes write.
///
/// A save appends to the journal, so a save costs the same for ten records and for a hundred thousand. A checkpoint folds the journal into
/// a new document. After a clean close of a store of up to 1 MiB, only the document remains. Beside a document of more than 1 MiB, a
/// journal of up to half the document's size may remain too, because folding it would rewrite the whole document. Call ``checkpoint()`` if
/// you need the document alone to be complete. You can read the document with any tool, but do not edit it by hand: every line has a
/// checksum.
///
/// Files beside `spots.json`: `-journal`, `-lock`, `-previous` (if you ask for it), `-quarantine-…` (bytes that were cut from a journal),
/// and `-tmp` while one of them is being written.
///
/// One process at a time writes the file. Every other open for writing throws: `.alreadyOpen` in this process, `.locked` in another.
///
/// ## Cost
///
/// Opening reads the whole file, and keeps every record in memory as bytes until its first use. A durable commit is one write and one sync.
/// The first commit also creates the journal, and a commit that finds no allocated space first grows the journal. A checkpoint rewrites the
/// document on another thread, with memory for the changes in the journal and some MiB.
///
/// ## Topics
///
/// ### Making a backend
/// - ``init(file:)``
/// - ``init(file:fileSystem:)``
///
/// ### Formats
/// - <doc:JSONSnapshotFormat>
/// - <doc:JournalFormat>
public final class JSONFileBackend: PackingBackend {
  private let paths: JSONFilePaths
  private let isFileURL: Bool
  private let fileSystem: any FileSystem
  private let tuning: Tuning
  private let phase = Mutex(Phase.new)

  private enum Phase {
    case new
    /// ``open(_:_:)`` is running.
    case opening
    /// ``open(_:_:)`` has read the files, and ``recover(_:)`` was not called yet.
    case found(JSONFileOpening.Found, OpenReport)
    case open(JSONFileStore)
    /// The store is suspended, and holds no lock.
    case suspended(JSONFileStore)
    case reading
    case closed
  }

  /// Sizes that govern the journal and the document, which only tests set to other values.
  package struct Tuning: Sendable {
    /// Unit in bytes in which space for the journal is allocated, a multiple of 512.
    package var journalChunk = 64 << 10
    /// Size in bytes up to which a pause or a close rewrites the document for any change.
    package var smallFile = 1 << 20

    package init(journalChunk: Int = 64 << 10, smallFile: Int = 1 << 20) {
      self.journalChunk = journalChunk
      self.smallFile = smallFile
    }
  }

  /// Creates a backend for a file, which is not touched before ``open(_:_:)``.
  public convenience init(file: URL) {
    self.init(file: file, fileSystem: POSIXFileSystem(), tuning: .init())
  }

  /// Creates a backend for a file in a file system of your own, such as a simulated one.
  public convenience init(file: URL, fileSystem: any FileSystem) {
    self.init(file: file, fileSystem: fileSystem, tuning: .init())
  }

  package init(file: URL, fileSystem: any FileSystem, tuning: Tuning) {
    paths = JSONFilePaths(file)
    isFileURL = file.isFileURL
    self.fileSystem = fileSystem
    self.tuning = tuning
  }

  /// Path of the JSON document.
  public var name: String { paths.mainFile }

  /// Reads the store in the state in which a crash may have left it, and passes every record to `visit`.
  ///
  /// Creates only the lock file and missing directories, and changes no other file. With `access: .readOnly` the call takes no lock either,
  /// and also reads the files beside a writer.
  ///
  /// - Throws: as ``StorageBackend/open(_:_:)``. `.unsupported` for a file that has several names (hard links) and is opened for writing,
  ///   for a name that is too long, and for anything but a plain file. In every case the files are left as they were.
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try open(options, limits: nil) { $0.forEach(visit) }
  }

  package func openPacked(_ options: StoreOptions, _ visit: (LoadedRecords) -> Void) throws(RepositoryError) -> OpenReport {
    try open(options, limits: options.limits, visit)
  }

  private func open(
    _ options: StoreOptions, limits: StoreOptions.Limits?, _ visit: (LoadedRecords) -> Void
  ) throws(RepositoryError) -> OpenReport {
    // While a JSON store is open, it reads no commits of other processes, so several processes cannot write to it at once.
    guard options.access != .shared else {
      throw RepositoryError(.unsupported, "a JSON file has one writer; use SQLite for several", file: name)
    }
    guard isFileURL else { throw .noFileURL(name) }
    // The phase changes before the files are read, so that a second `open` on another thread throws instead of reading at the same time.
    let isFree = phase.withLock { phase in
      switch phase {
      case .new, .closed:
        phase = .opening
        return true
      case .opening, .found, .open, .suspended, .reading: return false
      }
    }
    guard isFree else { throw RepositoryError(.alreadyOpen, "the backend is open: close its store first", file: name) }
    // The files are read outside the mutex, because `visit` is the caller's code and reading takes long.
    do throws(RepositoryError) {
      if options.access == .readOnly {
        let (records, report) = try reading(options).run(limits)
        for record in records { visit(record) }
        phase.withLock { $0 = .reading }
        return report
      }
      let (found, report) = try JSONFileOpening(paths: paths, fileSystem: fileSystem, tuning: tuning, options: options).run(limits, visit)
      phase.withLock { $0 = .found(found, report) }
      return report
    } catch {
      // A backend whose `open` has thrown must accept another `open`.
      phase.withLock { $0 = .new }
      throw error
    }
  }

  /// Creates a new store, or makes a crashed one ready for commits.
  ///
  /// Copies a torn tail (an unfinished write at the end of the journal) to a quarantine file and cuts it, renews the journal, and removes
  /// temporary files. Writes the document again in an unused store and after deletions on a full disk, because a failed sync may have left
  /// the document's name undurable.
  ///
  /// - Throws: as ``StorageBackend/recover(_:)``. `.locked` if another process has created the store meanwhile.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    try phase.withLock { (phase) throws(RepositoryError) -> OpenReport in
      guard case .found(let found, _) = phase else {
        throw RepositoryError(.closed, "expected a store that was read and not recovered, found none: open it first", file: name)
      }
      var report = report
      phase = .open(try recovery.run(found, &report))
      return report
    }
  }

  /// Always `false`, because a JSON file has one writer, and a reader shows the state found at open.
  public var hasOtherWriters: Bool { false }

  /// Appends the batch to the journal as one checksummed frame, and syncs it if the batch is durable.
  ///
  /// - Throws: as ``StorageBackend/commit(_:)``. `.dataMissing` or `.locked` if the store's files were removed, replaced or moved while it
  ///   is open. With these two codes nothing was written, and commits succeed again once the files are back.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).commit(batch) }
  }

  /// Commits deletions in space that the journal reserves for them, and then folds the journal to free the deleted bytes.
  ///
  /// If the deletions have no room in the journal, the document is written again without the deleted records. The journal first gives back
  /// the space that it has allocated ahead, which makes room for the new document. If tombstones (records of deletions) have no room
  /// either, they are dropped, and the next opening reports the commit up to which deletions are unknown.
  /// - Throws: as ``commit(_:)``. `.full` if the remaining records have no room beside the old document.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).commitOnFullDisk(batch) }
  }

  /// Syncs the journal if it has unsynced commits.
  ///
  /// Does nothing in a store opened `.readOnly`.
  ///
  /// - Throws: `.outcomeUnknown`, `.dataMissing`, `.locked`, `.inputOutput`, `.protectedDataUnavailable`, `.poisoned`, `.closed`.
  public func flush() throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in
      if case .reading = phase { return }
      try store(&phase).flush()
    }
  }

  /// Whether the journal is larger than one and a half times the document, and larger than 4 MiB.
  public var wantsCheckpoint: Bool {
    phase.withLock { if case .open(let store) = $0 { store.wantsCheckpoint } else { false } }
  }

  /// Whether the document is small (1 MiB), or at most twice as large as the journal, or the oldest change in the journal is a day old.
  ///
  /// The store reads this property at a pause after a commit, and ``close()`` reads it too. A change that is a day old starts no checkpoint
  /// before such a pause or close.
  public var isCheckpointWorthwhile: Bool {
    phase.withLock { if case .open(let store) = $0 { store.isCheckpointWorthwhile } else { false } }
  }

  /// Writes a new document with all records, and begins a new, empty journal.
  ///
  /// Cost: reads and writes the whole document.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` if the store goes on as before, `.corrupted` if the document was
  ///   damaged, `.dataMissing` if it was removed or replaced, `.locked` for a journal of another process, `.outcomeUnknown`, `.poisoned`,
  ///   `.closed`. `.unsupported` in a store opened `.readOnly`.
  public func checkpoint() throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).checkpoint() }
  }

  /// Begins a checkpoint whose new document is written while commits go on.
  ///
  /// Cost: reads and writes the whole document on another thread, with memory for the changes of the journal and some MiB.
  /// - Throws: as ``checkpoint()``.
  public func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).beginCheckpoint() }
  }

  /// Renames the new document into place, and then a new journal with the commits made since ``beginCheckpoint()``.
  ///
  /// - Throws: as ``checkpoint()``.
  public func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).continueCheckpoint() }
  }

  /// Makes every commit durable, and releases the locks of the document and of the lock file.
  ///
  /// See `StorageBackend.suspend()`.
  ///
  /// - Throws: as ``flush()``. The locks are released even if the call throws.
  public func suspend() throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in
      switch phase {
      case .open(let store):
        // The phase changes before the call, because `store.suspend()` releases the locks even if it throws.
        phase = .suspended(store)
        try store.suspend()
      case .found(let found, _):
        // A store that was read and not recovered has made no commits, so it can be closed. `resume()` returns `false` for a closed
        // backend, and its caller then reads the store again.
        phase = .closed
        found.release()
      case .new, .opening, .suspended, .reading, .closed: return
      }
    }
  }

  /// Takes the locks again if the document is unchanged since ``suspend()``, and reads the commits that others have appended.
  ///
  /// Cost: some 0.1 ms if no other process has written. If another process has appended commits, the call reads and copies the journal. The
  /// call returns `false` after a checkpoint of another process, which every close of a store of up to 1 MiB makes. The store then reads
  /// everything again.
  /// - Throws: `.locked`, `.alreadyOpen`, `.unsupported` for a document that has several names by now, `.full`, `.dataMissing`,
  ///   `.inputOutput`, `.protectedDataUnavailable`.
  public func resume() throws(RepositoryError) -> Bool {
    try phase.withLock { (phase) throws(RepositoryError) in
      switch phase {
      case .suspended(let store):
        if try store.resume() {
          phase = .open(store)
          return true
        }
        store.release()
        phase = .closed
        return false
      case .reading: return true
      case .new, .opening, .found, .open, .closed: return false
      }
    }
  }

  /// Returns the commits of other processes that ``resume()`` has found in the journal.
  public func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    phase.withLock { if case .open(let store) = $0 { store.foreignCommits(after: revision) } else { nil } }
  }

  /// Reads document and journal back and compares every checksum, without changing anything.
  public func verify() -> VerifyReport {
    phase.withLock { phase in
      switch phase {
      case .reading: reading(StoreOptions(access: .readOnly)).verify()
      case .open(let store): store.verify()
      case .new, .opening, .found, .suspended, .closed:
        VerifyReport(problems: [notOpen])
      }
    }
  }

  /// Writes a document with all records to a new file, durably.
  ///
  /// No journal of this store continues the copy. If the copy is put in the place of the document, Larder refuses it beside the journal.
  /// - Throws: `.alreadyExists`, `.full`, `.inputOutput`, `.protectedDataUnavailable`, `.corrupted`, `.poisoned`, `.closed`. `.unsupported`
  ///   for a name that is too long, and in a store opened `.readOnly`.
  public func backup(to url: URL) throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).backup(to: JSONFilePaths(url)) }
  }

  /// Reads a copy of a store without a lock.
  ///
  /// - Throws: as ``StorageBackend/readCopy(at:_:)``.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    // The copy is read by a new backend, so that the call may run beside calls of the open store without waiting for this backend's mutex.
    try JSONFileBackend(file: url, fileSystem: fileSystem, tuning: tuning).open(StoreOptions(access: .readOnly), visit)
  }

  /// Folds the journal into the document or makes the journal durable, and releases the lock even if that fails.
  ///
  /// ``isCheckpointWorthwhile`` decides between folding and leaving the journal.
  /// - Throws: The error that prevented a clean close. The journal then stays, and the next opening replays it.
  public func close() throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in
      let old = phase
      // The phase changes before the steps that may throw, so that a second `close()` does nothing.
      phase = .closed
      if case .found(let found, _) = old { found.release() }
      if case .suspended(let store) = old { store.release() }
      if case .open(let store) = old { try store.close() }
    }
  }

  /// Releases the lock and leaves every file as it was found.
  public func abandon() {
    phase.withLock { phase in
      if case .found(let found, _) = phase { found.release() }
      if case .open(let store) = phase { store.release() }
      if case .suspended(let store) = phase { store.release() }
      phase = .closed
    }
  }

  // MARK: -

  private var notOpen: RepositoryError { RepositoryError(.closed, "the store is not open: open it first", file: name) }

  private var recovery: JSONFileRecovery { JSONFileRecovery(paths: paths, fileSystem: fileSystem, tuning: tuning) }

  private func reading(_ options: StoreOptions) -> JSONFileReader {
    JSONFileReader(paths: paths, fileSystem: fileSystem, options: options)
  }

  /// Returns the open store, after recovering a store that was only read, because a write to it accepts its contents.
  private func store(_ phase: inout Phase) throws(RepositoryError) -> JSONFileStore {
    switch phase {
    case .open(let store): return store
    case .found(let found, var report):
      let store = try recovery.run(found, &report)
      phase = .open(store)
      return store
    case .reading: throw RepositoryError(.unsupported, "the store was opened for reading only", file: name)
    case .new, .opening, .suspended, .closed: throw notOpen
    }
  }
}
