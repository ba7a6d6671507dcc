// JSONFile/ keeps a store in one JSON document that people can read, and a journal beside it while the store is open.
// Invariant: snapshot and journal together hold everything acknowledged, at every moment of every operation. Called through StorageBackend.

public import Foundation
internal import Synchronization

/// Keeps a store in a JSON file: a complete, valid document at all times, with a journal beside it while the store is open.
///
/// A save appends to the journal, so that it costs the same for ten records and for a hundred thousand; a checkpoint folds the journal into
/// a new document. After a clean close only the document remains. It can be read with any tool but not edited by hand: every line has a
/// checksum.
///
/// Files beside `spots.json`: `-journal`, `-lock`, `-previous` (if asked for), `-quarantine-…` (bytes that were cut from a journal), and
/// `-tmp` while one of them is being written.
public final class JSONFileBackend: StorageBackend {
  private let paths: JSONFilePaths
  private let isFileURL: Bool
  private let fileSystem: any FileSystem
  private let tuning: Tuning
  private let phase = Mutex(Phase.new)

  private enum Phase: Sendable {
    case new
    case open(JSONFileStore)
    case reading
    case closed
  }

  /// What tests set otherwise.
  package struct Tuning: Sendable {
    /// How much journal is allocated at a time, in bytes: a multiple of 512.
    package var journalChunk = 64 << 10
    /// Off only to show that the tests notice.
    package var comparesChecksums = true

    package init(journalChunk: Int = 64 << 10, comparesChecksums: Bool = true) {
      self.journalChunk = journalChunk
      self.comparesChecksums = comparesChecksums
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
  public var name: String { paths.snapshot }

  /// Creates the store, or recovers it from whatever a crash has left, and hands over every record.
  ///
  /// With `access: .readOnly` nothing is created, locked or changed: what is on disk is read, also beside a writer.
  ///
  /// - Throws: as ``StorageBackend/open(_:_:)``; in every case the files are left as they were.
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    guard options.access != .shared else {
      throw RepositoryError(.unsupported, "a JSON file has one writer; use SQLite for several", file: name)
    }
    guard isFileURL else { throw RepositoryError(.unsupported, "not the URL of a file", file: name) }
    switch phase.withLock({ $0 }) {
    case .open, .reading: throw RepositoryError(.alreadyOpen, "the backend is open", file: name)
    case .new, .closed: break
    }
    if options.access == .readOnly {
      let (records, report) = try JSONFileReading(paths: paths, fileSystem: fileSystem, tuning: tuning, options: options).run()
      for record in records { visit(record) }
      phase.withLock { $0 = .reading }
      return report
    }
    let recovery = JSONFileRecovery(paths: paths, fileSystem: fileSystem, tuning: tuning, options: options)
    let (store, report) = try recovery.run(visit)
    phase.withLock { $0 = .open(store) }
    return report
  }

  /// Appends the batch to the journal as one frame, and syncs it if the batch is durable.
  ///
  /// - Throws: as ``StorageBackend/commit(_:)``.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    try withStore { store throws(RepositoryError) in try store.commit(batch) }
  }

  /// Syncs the journal, if a commit in it is not synced yet.
  ///
  /// - Throws: `.outcomeUnknown`, `.poisoned`, `.closed`.
  public func flush() throws(RepositoryError) {
    try withStore { store throws(RepositoryError) in try store.flush() }
  }

  /// Whether the journal has outgrown the document, and 4 MiB.
  public var wantsCheckpoint: Bool {
    if case .open(let store) = phase.withLock({ $0 }) { store.wantsCheckpoint } else { false }
  }

  /// Writes a new document of everything, and begins a new journal.
  ///
  /// Cost: reads and writes the whole document.
  /// - Throws: `.full` or `.inputOutput` when the store goes on as before, `.corrupted` when the document was damaged, `.outcomeUnknown`,
  ///   `.poisoned`, `.closed`.
  public func checkpoint() throws(RepositoryError) {
    try withStore { store throws(RepositoryError) in try store.checkpoint() }
  }

  /// Reads document and journal back, compares every checksum, and changes nothing.
  public func verify() -> VerifyReport {
    let phase = phase.withLock { $0 }
    if case .reading = phase {
      return JSONFileReading(paths: paths, fileSystem: fileSystem, tuning: tuning, options: StoreOptions(access: .readOnly)).verify()
    }
    guard case .open(let store) = phase else {
      return VerifyReport(problems: [RepositoryError(.closed, "the store was closed", file: name)])
    }
    return store.verify()
  }

  /// Writes a document of everything to a new file, durably.
  ///
  /// - Throws: `.alreadyExists`, `.full`, `.inputOutput`, `.corrupted`, `.poisoned`, `.closed`.
  public func backup(to url: URL) throws(RepositoryError) {
    try withStore { store throws(RepositoryError) in try store.backup(to: JSONFilePaths(url)) }
  }

  /// Reads a copy without a lock.
  ///
  /// - Throws: as ``StorageBackend/readCopy(at:_:)``.
  public func readCopy(at url: URL, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try JSONFileBackend(file: url, fileSystem: fileSystem, tuning: tuning).open(StoreOptions(access: .readOnly), visit)
  }

  /// Folds the journal into the document and gives up the lock, which happens even when the first fails.
  ///
  /// - Throws: what prevented a clean close; the journal then stays, and the next open replays it.
  public func close() throws(RepositoryError) {
    guard case .open(var store) = phase.withLock({ $0 }) else { return phase.withLock { $0 = .closed } }
    phase.withLock { $0 = .closed }
    try store.close()
  }

  /// Gives up the lock; the journal stays, so that the files are as they were found.
  public func abandon() {
    guard case .open(let store) = phase.withLock({ $0 }) else { return phase.withLock { $0 = .closed } }
    phase.withLock { $0 = .closed }
    store.abandon()
  }

  /// Runs an operation on the open store and keeps its new state, also when it fails.
  ///
  /// Calls never overlap, so the lock is free meanwhile.
  private func withStore(
    _ operation: (inout JSONFileStore) throws(RepositoryError) -> Void
  ) throws(RepositoryError) {
    let open = phase.withLock { $0 }
    if case .reading = open { throw RepositoryError(.unsupported, "the store was opened for reading only", file: name) }
    guard case .open(var store) = open else { throw RepositoryError(.closed, "the store was closed", file: name) }
    phase.withLock { $0 = .new }  // so that the state is held once, and grows in place
    defer { phase.withLock { [store] in $0 = .open(store) } }
    try operation(&store)
  }
}
