// The folder JSONFile/ keeps a store in one JSON document that people can read, and a journal (an append-only log) beside it while the
// store is open.
// Invariant: document ("main file") and journal together hold every acknowledged commit, at every moment of every operation.
// The folder JSONFile/ is called through the protocol StorageBackend.

public import Foundation
internal import Synchronization

/// A backend that keeps a store in one JSON document, valid and complete at all times, with a journal beside it while the store is open.
///
/// ```swift
/// let store = try await Store.open(JSONFileBackend(file: url))
/// let spots = try await store.repository(RepositorySchema<Spot>("spots"))
/// ```
///
/// If your store has one repository, ``LocalRepository/init(jsonFile:schema:options:)`` opens the store and the repository in one line.
/// Prefer SQLite if several processes write.
///
/// A save appends to the journal, so a save costs the same for ten records and for a hundred thousand. A checkpoint folds the journal into
/// a new document. After a clean close of a store of up to 1 MiB, no journal remains. Beside a document of more than 1 MiB, a journal of up
/// to half the document's size may remain too, because folding the journal would rewrite the whole document. Call ``checkpoint()`` before
/// you close the store if you need the document alone to be complete. You can read the document with any tool, but do not edit it by hand:
/// every line has a checksum.
///
/// The files beside `spots.json` have its name and a suffix: `-journal`, `-lock`, `-index` (with ``Residency/onDisk(cache:)``), `-previous`
/// (with ``StoreOptions/keepsPreviousSnapshot``), `-quarantine-…` (bytes that were cut from a journal). A file that is being written has
/// `-tmp` at the end of its name.
///
/// Only one backend at a time can have the file open for writing. A second open for writing throws `.alreadyOpen` in the same process, and
/// `.locked` in another process.
///
/// ## Cost
///
/// Opening a store reads the whole file, and keeps every record in memory as bytes until the record's first use. With
/// ``Residency/onDisk(cache:)``, opening reads an index file and the journal, and the records stay in the file. A durable commit is one
/// write and one sync. The first commit also creates the journal, and a commit that finds too little allocated space first grows the
/// journal. A checkpoint rewrites the document on another thread, and needs memory for the changes in the journal and some MiB more.
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
/// - <doc:IndexFileFormat>
public final class JSONFileBackend: PackingBackend {
  let paths: JSONFilePaths
  private let isFileURL: Bool
  let fileSystem: any FileSystem
  private let tuning: Tuning
  private let phase = Mutex(Phase.new)

  private enum Phase {
    case new
    /// ``open(_:_:)`` is running.
    case opening
    /// ``open(_:_:)`` has read the files, and ``recover(_:)`` was not called yet.
    case found(JSONFileOpening.Found, OpenReport)
    case open(JSONFileStore)
    /// The store is suspended, and holds no lock of a file.
    case suspended(JSONFileStore)
    case reading
    case closed
  }

  /// Creates a backend for a file, without reading or creating the file before ``open(_:_:)``.
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

  /// Path of the JSON document that the backend reads and writes.
  public var name: String { paths.mainFile }

  /// Reads the store, also after a crash, and passes every record to `visit`.
  ///
  /// `open(_:_:)` creates the lock file and missing directories, and changes no other file. With `access: .readOnly` the call creates
  /// nothing, takes no lock, and can read the files while another process writes them.
  ///
  /// - Throws: as ``StorageBackend/open(_:_:)``. `.unsupported` for a file that has several names (hard links) and is opened for writing,
  ///   for a name that is too long, and for anything but a plain file. If the call throws, the document and the journal are unchanged.
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try open(options, limits: nil) { $0.forEach(visit) }
  }

  package func openPacked(_ options: StoreOptions, _ visit: (LoadedRecords) -> Void) throws(RepositoryError) -> OpenReport {
    try open(options, limits: options.limits, visit)
  }

  private func open(
    _ options: StoreOptions, limits: StoreOptions.Limits?, _ visit: (LoadedRecords) -> Void
  ) throws(RepositoryError) -> OpenReport {
    try beginOpening(options) { () throws(RepositoryError) in
      if options.access == .readOnly {
        let (records, report) = try reading(options).run(limits)
        for record in records { visit(record) }
        return (nil, report)
      }
      let (found, report) = try opening(options).run(limits, visit)
      return ((found, report), report)
    }
  }

  /// Checks the options and the phase, calls `read`, and keeps the files that `read` has opened for ``recover(_:)``.
  func beginOpening<Output>(
    _ options: StoreOptions, _ read: () throws(RepositoryError) -> ((JSONFileOpening.Found, OpenReport)?, Output)
  ) throws(RepositoryError) -> Output {
    // An open JSON store reads no commits of other processes, so it does not support several writing processes at once.
    guard options.access != .shared else {
      throw RepositoryError(.unsupported, "a JSON file has one writer; use SQLite for several", file: name)
    }
    guard isFileURL else { throw .noFileURL(name) }
    // The phase changes before the files are read, so that a second `open` on another thread throws and does not read at the same time.
    let isFree = phase.withLock { phase in
      switch phase {
      case .new, .closed:
        phase = .opening
        return true
      case .opening, .found, .open, .suspended, .reading: return false
      }
    }
    guard isFree else { throw RepositoryError(.alreadyOpen, "the backend is open: close its store first", file: name) }
    // The files are read without holding the mutex, because `visit` is the caller's code and reading takes long.
    do throws(RepositoryError) {
      let (found, output) = try read()
      phase.withLock { $0 = found.map(Phase.found) ?? .reading }
      return output
    } catch {
      // After an `open` that has thrown, the backend must accept another `open`.
      phase.withLock { $0 = .new }
      throw error
    }
  }

  /// Creates a new store, or makes an existing store ready for commits after a clean close or a crash.
  ///
  /// Copies a torn tail (an unfinished write at the end of the journal) to a quarantine file and cuts it, renews the journal, and removes
  /// temporary files. In a store without commits, and after deletions on a full disk, the call also writes the document again. A failed
  /// sync may have left the document's directory entry undurable.
  ///
  /// - Throws: as ``StorageBackend/recover(_:)``. `.locked` if another process has created the store since ``open(_:_:)``.
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

  /// Always `false`, because a JSON file has one writer, and a store that is opened `.readOnly` shows the state at its opening.
  public var hasOtherWriters: Bool { false }

  /// Appends the batch to the journal as one checksummed frame, and syncs it if the batch is durable.
  ///
  /// - Throws: as ``StorageBackend/commit(_:)``. `.dataMissing` or `.locked` if the store's files were removed, replaced or moved while the
  ///   store is open. If the code is `.dataMissing` or `.locked`, nothing was written, and commits succeed again once the files are back.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    try withStore { (store) throws(RepositoryError) in try store.commit(batch) }
  }

  /// Commits deletions in space that the journal reserves for deletions, and then folds the journal to free the deleted bytes.
  ///
  /// If the deletions have no room in the journal, the document is written again without the deleted records. To make room for the new
  /// document, the space that the journal has allocated ahead is freed first, and so are the keys in the index file. If the tombstones
  /// (records of deletions) have no room in the new document, they are dropped, and the next opening reports the commit up to which
  /// deletions are unknown.
  /// - Throws: as ``commit(_:)``. `.full` if the disk has no room for a new document with the remaining records beside the old document.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try withStore { (store) throws(RepositoryError) in try store.commitOnFullDisk(batch) }
  }

  /// Syncs the journal if it has unsynced commits.
  ///
  /// Does nothing in a store opened `.readOnly`.
  /// - Throws: `.outcomeUnknown`, `.dataMissing`, `.locked`, `.inputOutput`, `.protectedDataUnavailable`, `.poisoned`, `.closed`.
  public func flush() throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in
      if case .reading = phase { return }
      try store(&phase).flush()
    }
  }

  /// True if the journal is larger than 4 MiB and one and a half times the document, or than 16 MiB if records stay in the files.
  public var wantsCheckpoint: Bool {
    ifOpen { $0.wantsCheckpoint }
  }

  /// True if the document has at most 1 MiB or at most twice the journal's size, or if the journal's oldest change is a day old.
  ///
  /// The store reads this property at a pause after a commit, and ``close()`` reads it too. A change that is a day old starts no checkpoint
  /// before the next pause or close.
  public var isCheckpointWorthwhile: Bool {
    ifOpen { $0.isCheckpointWorthwhile }
  }

  /// Writes a new document with all records, and creates a new, empty journal.
  ///
  /// Cost: reads and writes the whole document and, with ``Residency/onDisk(cache:)``, the keys of the indexes.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` if the store can be used as before, `.corrupted` if the document was
  ///   damaged, `.dataMissing` if the document was removed or replaced, `.locked` for a journal of another process, `.outcomeUnknown`,
  ///   `.poisoned`, `.closed`. `.unsupported` in a store opened `.readOnly`.
  public func checkpoint() throws(RepositoryError) {
    try withStore { (store) throws(RepositoryError) in try store.checkpoint() }
  }

  /// Begins a checkpoint whose new document is written on another thread, while the store can commit.
  ///
  /// Cost: reads and writes the whole document on another thread, and needs memory for the changes in the journal and some MiB more.
  /// - Throws: as ``checkpoint()``.
  public func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try withStore { (store) throws(RepositoryError) in try store.beginCheckpoint() }
  }

  /// Renames the new document over the old one, and then replaces the journal by one with the commits since ``beginCheckpoint()``.
  ///
  /// - Throws: as ``checkpoint()``.
  public func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try withStore { (store) throws(RepositoryError) in try store.continueCheckpoint() }
  }

  /// Makes every commit durable, and releases the locks of the document and of the lock file.
  ///
  /// See `StorageBackend.suspend()`.
  /// - Throws: as ``flush()``. The locks are released even if the call throws.
  public func suspend() throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in
      switch phase {
      case .open(let store):
        // The phase changes before `store.suspend()` is called, because `store.suspend()` releases the locks even if it throws.
        phase = .suspended(store)
        try store.suspend()
      case .found(let found, _):
        // A store that was read but not recovered has made no commits, so the backend can be closed. `resume()` returns `false` for a
        // closed backend, and the caller of `resume()` then reads the store again.
        phase = .closed
        found.release()
      case .new, .opening, .suspended, .reading, .closed: return
      }
    }
  }

  /// Takes the locks again if the document is unchanged since ``suspend()``, and reads commits that other processes have appended.
  ///
  /// Cost: some 0.1 ms if no other process has written. If another process has appended commits, the call reads and copies the journal.
  ///
  /// The call returns `false` after a checkpoint of another process. In a store of up to 1 MiB, the close of another process makes such a
  /// checkpoint if the journal has commits. If `resume()` returns `false`, the store reads all records again.
  /// - Throws: `.locked`, `.alreadyOpen`, `.unsupported` if the document has several names (hard links) by now, `.full`, `.dataMissing`,
  ///   `.inputOutput`, `.protectedDataUnavailable`.
  public func resume() throws(RepositoryError) -> Bool {
    try phase.withLock { (phase) throws(RepositoryError) in
      switch phase {
      case .suspended(let store):
        if try store.resume() {
          phase = .open(store)
          return true
        }
        // The next store of this backend does not know the documents that snapshots of this one have open.
        _ = store.paging.closeReplaced()
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

  /// Reads the document and the journal again and compares every checksum, without changing a file.
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
  /// No journal of this store continues the copy. If you put the copy in the place of the document while the document's journal exists, the
  /// next opening throws.
  /// - Throws: `.alreadyExists`, `.full`, `.inputOutput`, `.protectedDataUnavailable`, `.corrupted`, `.poisoned`, `.closed`. `.unsupported`
  ///   for a name that is too long, and in a store opened `.readOnly`.
  public func backup(to url: URL) throws(RepositoryError) {
    try withStore { (store) throws(RepositoryError) in try store.backup(to: JSONFilePaths(url)) }
  }

  /// Reads a copy of a store without a lock.
  ///
  /// - Throws: as ``StorageBackend/readCopy(at:_:)``.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    // A new backend reads the copy, so that this call does not wait for the mutex of the open store's backend.
    try JSONFileBackend(file: url, fileSystem: fileSystem, tuning: tuning).open(StoreOptions(access: .readOnly), visit)
  }

  /// Folds the journal into the document or makes the journal durable, and releases the locks even if the call throws.
  ///
  /// If ``isCheckpointWorthwhile`` is true, the call folds the journal. If ``isCheckpointWorthwhile`` is false, the journal stays beside
  /// the document.
  /// - Throws: The error that prevented a clean close. If the call throws, the journal stays, and the next opening replays it.
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

  /// Releases the locks without writing to the document or the journal.
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
  func opening(_ options: StoreOptions) -> JSONFileOpening {
    JSONFileOpening(paths: paths, fileSystem: fileSystem, tuning: tuning, options: options)
  }

  private func reading(_ options: StoreOptions) -> JSONFileReader {
    JSONFileReader(paths: paths, fileSystem: fileSystem, options: options)
  }

  /// Calls `body` with the open store.
  ///
  /// - Throws: `.closed`, and the errors of recovering a store that was only read.
  func withStore<Output: Sendable>(_ body: @Sendable (JSONFileStore) throws(RepositoryError) -> Output) throws(RepositoryError) -> Output {
    try phase.withLock { (phase) throws(RepositoryError) in
      let store = try store(&phase)
      return try body(store)
    }
  }

  /// Calls `body` with the open store, or returns false if no store is open.
  func ifOpen(_ body: @Sendable (JSONFileStore) -> Bool) -> Bool {
    phase.withLock { if case .open(let store) = $0 { body(store) } else { false } }
  }

  /// Returns the open store, and first recovers a store that was read but not recovered, because a write accepts the store's contents.
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
