// JSONFile/ keeps a store in one JSON document that people can read, and a journal beside it while the store is open.
// Invariant: main file and journal together hold everything acknowledged, at every moment of every operation. Called through
// StorageBackend.

public import Foundation
internal import Synchronization

/// A backend that keeps a store in a JSON file: a complete, valid document at all times, with a journal beside it while the store is open.
///
/// ```swift
/// let store = try await Store.open(JSONFileBackend(file: url))
/// let spots = try await store.repository(RepositorySchema<Spot>("spots"))
/// ```
///
/// For a store with one repository, ``LocalRepository/init(jsonFile:schema:options:)`` does the same in one line.
///
/// A save appends to the journal, so that it costs the same for ten records and for a hundred thousand; a checkpoint folds the journal into
/// a new document. After a clean close only the document remains, and beside one of more than 1 MiB a journal of up to half its size,
/// which is not worth folding yet: the document alone is complete after ``checkpoint()``. It can be read with any tool but not edited by
/// hand: every line has a checksum.
///
/// Files beside `spots.json`: `-journal`, `-lock`, `-previous` (if asked for), `-quarantine-…` (bytes that were cut from a journal), and
/// `-tmp` while one of them is being written.
///
/// One process at a time writes the file, and every other open for writing is refused: `.alreadyOpen` in this process, `.locked` in
/// another.
///
/// ## Cost
///
/// Opening reads the whole file, and keeps every record in memory as bytes until it is first used. A durable commit is one write and one
/// sync; the first one makes the journal, and one in several grows it. A checkpoint rewrites the document on another thread, with memory
/// for the changes and some MiB.
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
    /// While ``open(_:_:)`` runs.
    case opening
    /// Read, and not accepted yet.
    case found(JSONFileOpening.Found, OpenReport)
    case open(JSONFileStore)
    /// Open before, and without a lock now.
    case suspended(JSONFileStore)
    case reading
    case closed
  }

  /// Sizes that tests set otherwise.
  package struct Tuning: Sendable {
    /// The number of bytes of journal that are allocated at a time: a multiple of 512.
    package var journalChunk = 64 << 10
    /// The size up to which a document is rewritten for any change, in bytes.
    package var smallFile = 1 << 20

    package init(journalChunk: Int = 64 << 10, smallFile: Int = 1 << 20) {
      self.journalChunk = journalChunk
      self.smallFile = smallFile
    }
  }

  /// Names the file; nothing is touched before ``open(_:_:)``.
  public convenience init(file: URL) {
    self.init(file: file, fileSystem: POSIXFileSystem(), tuning: .init())
  }

  /// Names a file in a file system of your own, such as a simulated one.
  public convenience init(file: URL, fileSystem: any FileSystem) {
    self.init(file: file, fileSystem: fileSystem, tuning: .init())
  }

  package init(file: URL, fileSystem: any FileSystem, tuning: Tuning) {
    paths = JSONFilePaths(file)
    isFileURL = file.isFileURL
    self.fileSystem = fileSystem
    self.tuning = tuning
  }

  /// The path of the JSON document.
  public var name: String { paths.mainFile }

  /// Reads the store, whatever a crash has left of it, and hands over every record; nothing is created but the lock and missing
  /// directories, and nothing changed.
  ///
  /// With `access: .readOnly` nothing is locked either: what is on disk is read, also beside a writer.
  ///
  /// - Throws: as ``StorageBackend/open(_:_:)``; `.unsupported` for a file that has several names (hard links) and is opened for writing,
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
    guard options.access != .shared else {
      throw RepositoryError(.unsupported, "a JSON file has one writer; use SQLite for several", file: name)
    }
    guard isFileURL else { throw .noFileURL(name) }
    let isFree = phase.withLock { phase in
      switch phase {
      case .new, .closed:
        phase = .opening
        return true
      case .opening, .found, .open, .suspended, .reading: return false
      }
    }
    guard isFree else { throw RepositoryError(.alreadyOpen, "the backend is open: close its store first", file: name) }
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
      phase.withLock { $0 = .new }
      throw error
    }
  }

  /// Creates the store; or keeps a torn tail aside and cuts it, renews the journal, and removes temporary files; writes the document anew
  /// where it may owe its name to a sync that has failed: that of an unused store, and one that deletions on a full disk have written.
  ///
  /// - Throws: as ``StorageBackend/recover(_:)``; `.locked` when another process has created the store meanwhile.
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

  /// Whether others may commit while the file is open: always `false`, since a reader of a JSON file shows the state found at open.
  public var hasOtherWriters: Bool { false }

  /// Appends the batch to the journal as one frame, and syncs it if the batch is durable.
  ///
  /// - Throws: as ``StorageBackend/commit(_:)``; `.dataMissing` or `.locked` when the store's files were removed, replaced or moved while
  ///   it is open: nothing was written then, and the store goes on once they are back.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).commit(batch) }
  }

  /// Appends deletions to the space that the journal keeps for them, and folds it, so that the space of what was deleted is free; where
  /// there is no room in it, writes the document anew without what is deleted.
  ///
  /// For the new document the journal gives back what it has allocated ahead: there is room for some records that stay. Tombstones that
  /// have none are forgotten, and the report of the next opening says since when deletions are known.
  /// - Throws: as ``commit(_:)``; `.full` when what stays has no room beside the old document.
  public func commitOnFullDisk(_ batch: WriteBatch) throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).commitOnFullDisk(batch) }
  }

  /// Syncs the journal, if a commit in it is not synced yet; does nothing in a store opened `.readOnly`.
  ///
  /// - Throws: `.outcomeUnknown`, `.dataMissing`, `.locked`, `.inputOutput`, `.protectedDataUnavailable`, `.poisoned`, `.closed`.
  public func flush() throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in
      if case .reading = phase { return }
      try store(&phase).flush()
    }
  }

  /// Whether the journal is larger than one and a half times the document, and 4 MiB.
  public var wantsCheckpoint: Bool {
    phase.withLock { if case .open(let store) = $0 { store.wantsCheckpoint } else { false } }
  }

  /// Whether the document is small (1 MiB), or at most twice as large as the journal, or the oldest change is a day old.
  ///
  /// Asked at a pause after a commit, and on close: a change that is a day old waits for one of these.
  public var isCheckpointWorthwhile: Bool {
    phase.withLock { if case .open(let store) = $0 { store.isCheckpointWorthwhile } else { false } }
  }

  /// Writes a new document of everything, and begins a new journal.
  ///
  /// Cost: reads and writes the whole document.
  /// - Throws: `.full`, `.inputOutput` or `.protectedDataUnavailable` when the store goes on as before, `.corrupted` when the document was
  ///   damaged, `.dataMissing` when it was removed or replaced, `.locked` for a journal of another process, `.outcomeUnknown`,
  ///   `.poisoned`, `.closed`; `.unsupported` in a store opened `.readOnly`.
  public func checkpoint() throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).checkpoint() }
  }

  /// Begins a new document that is written while commits go on.
  ///
  /// Cost: reads and writes the whole document, on another thread; memory for the changes of the journal and some MiB.
  /// - Throws: as ``checkpoint()``.
  public func beginCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).beginCheckpoint() }
  }

  /// Puts the new document into place, then a new journal with what was committed meanwhile.
  ///
  /// - Throws: as ``checkpoint()``.
  public func continueCheckpoint() throws(RepositoryError) -> (@Sendable () -> Void)? {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).continueCheckpoint() }
  }

  /// Makes everything durable, and gives up the lock of the document and the lock file; see `StorageBackend.suspend()`.
  ///
  /// - Throws: as ``flush()``; the locks are given up all the same.
  public func suspend() throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in
      switch phase {
      case .open(let store):
        phase = .suspended(store)
        try store.suspend()
      case .found(let found, _):
        // Nothing was committed yet, and it is read anew.
        phase = .closed
        found.release()
      case .new, .opening, .suspended, .reading, .closed: return
      }
    }
  }

  /// Takes the locks again, if the document is as ``suspend()`` has left it, and reads what others have appended to the journal.
  ///
  /// Cost: some 0.1 ms where nobody has written; otherwise reading and copying the journal. `false` after a checkpoint of another process,
  /// which every close of a store of up to 1 MiB makes: everything is read anew then.
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

  /// Returns the commits of others that ``resume()`` has found in the journal.
  public func foreignCommits(after revision: Revision) throws(RepositoryError) -> ForeignCommits? {
    phase.withLock { if case .open(let store) = $0 { store.foreignCommits(after: revision) } else { nil } }
  }

  /// Reads document and journal back, compares every checksum, and changes nothing.
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

  /// Writes a document of everything to a new file, durably.
  ///
  /// No journal of this store continues the copy: put in the place of the document, it is refused beside one.
  /// - Throws: `.alreadyExists`, `.full`, `.inputOutput`, `.protectedDataUnavailable`, `.corrupted`, `.poisoned`, `.closed`; `.unsupported`
  ///   for a name that is too long, and in a store opened `.readOnly`.
  public func backup(to url: URL) throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in try store(&phase).backup(to: JSONFilePaths(url)) }
  }

  /// Reads a copy without a lock.
  ///
  /// - Throws: as ``StorageBackend/readCopy(at:_:)``.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try JSONFileBackend(file: url, fileSystem: fileSystem, tuning: tuning).open(StoreOptions(access: .readOnly), visit)
  }

  /// Folds the journal into the document if that is worth it (see ``isCheckpointWorthwhile``), else makes it durable; gives up the lock,
  /// which happens even when the first fails.
  ///
  /// - Throws: what prevented a clean close; the journal then stays, and the next open replays it.
  public func close() throws(RepositoryError) {
    try phase.withLock { (phase) throws(RepositoryError) in
      let old = phase
      phase = .closed
      if case .found(let found, _) = old { found.release() }
      if case .suspended(let store) = old { store.release() }
      if case .open(let store) = old { try store.close() }
    }
  }

  /// Gives up the lock and leaves every file as it was found.
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

  /// Returns the open store; one that was read and not recovered is recovered first, since writing to it accepts it.
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
