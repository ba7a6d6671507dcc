public import Foundation
internal import Synchronization

/// A backend that keeps nothing beyond the process: for tests, previews, and values that are not worth a file.
///
/// It takes part in everything a store promises except durability.
public final class InMemoryBackend: StorageBackend {
  private struct State: Sendable {
    var records: [RecordAddress: StoredRecord] = [:]
    var commit = Revision.zero
    var isOpen = false
    var isReadOnly = false
    var wasOpened = false
    var tombstoneLimit = 0
    var tombstoneCount = 0
    /// The newest deletion that was forgotten.
    var tombstoneHorizon = Revision.zero
    let storeID = UUID()

    var recordCount: Int { records.count - tombstoneCount }

    mutating func put(_ record: StoredRecord) {
      let old = records.updateValue(record, forKey: record.address)
      if let old, old.value == nil { tombstoneCount -= 1 }
      if record.value == nil { tombstoneCount += 1 }
    }

    /// Hands over the records in the order of their addresses.
    func read(_ visit: (StoredRecord) -> Void) -> OpenReport {
      for record in records.values.sorted(by: { $0.address < $1.address }) { visit(record) }
      return OpenReport(
        storeID: storeID, commit: commit, isNew: !wasOpened, recordCount: recordCount, tombstoneHorizon: tombstoneHorizon)
    }

    /// Keeps the newest tombstones, as many as the limit says.
    mutating func forgetOldTombstones() {
      guard tombstoneCount > tombstoneLimit else { return }
      let oldestFirst = records.values.filter { $0.value == nil }.sorted { $0.revision < $1.revision }
      tombstoneCount = tombstoneLimit
      for tombstone in oldestFirst.dropLast(tombstoneLimit) {
        records[tombstone.address] = nil
        tombstoneHorizon = tombstone.revision
      }
    }
  }
  private let state = Mutex(State())

  /// Makes an empty backend.
  ///
  /// Its contents outlive a closed store for as long as the object does, so that a test can reopen it.
  public init() {}

  /// Makes a backend that is open and holds some records.
  init(open records: [StoredRecord], at commit: Revision, tombstoneLimit: Int) {
    state.withLock { state in
      for record in records { state.put(record) }
      (state.commit, state.isOpen, state.wasOpened, state.tombstoneLimit) = (commit, true, true, tombstoneLimit)
    }
  }

  /// The identity of the store.
  var storeID: UUID { state.withLock { $0.storeID } }

  /// The word "memory".
  public var name: String { "memory" }

  /// Whether others may commit: always `false`, since memory has one user.
  public var hasOtherWriters: Bool { false }

  /// Hands over what earlier commits put in, in the order of addresses.
  ///
  /// - Throws: `.unsupported` for shared access, `.alreadyOpen`.
  public func open(_ options: StoreOptions, _ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    guard options.access != .shared else { throw RepositoryError(.unsupported, "memory is not shared", file: name) }
    let opened: State? = state.withLock { state in
      guard !state.isOpen else { return nil }
      let found = state
      state.isOpen = true
      state.isReadOnly = options.access == .readOnly
      state.tombstoneLimit = options.limits.tombstones
      return found
    }
    guard let opened else { throw RepositoryError(.alreadyOpen, "the backend is open", file: name) }
    return opened.read(visit)
  }

  /// Notes that the store exists from now on.
  ///
  /// - Throws: `.closed`.
  public func recover(_ report: OpenReport) throws(RepositoryError) -> OpenReport {
    try checkOpen()
    state.withLock { $0.wasOpened = true }
    return report
  }

  /// Keeps the batch.
  ///
  /// - Throws: `.closed`, `.unsupported` for a batch that does not follow the newest commit.
  public func commit(_ batch: WriteBatch) throws(RepositoryError) {
    let failure: RepositoryError? = state.withLock { state in
      guard state.isOpen else { return RepositoryError(.closed, file: name) }
      guard !state.isReadOnly else { return RepositoryError(.unsupported, "the store was opened for reading only", file: name) }
      guard batch.commits.lowerBound == state.commit.number + 1 else { return .notConsecutive(batch, after: state.commit, file: name) }
      for record in batch.records { state.put(record) }
      state.commit = Revision(batch.commits.upperBound)
      return nil
    }
    if let failure { throw failure }
  }

  /// Does nothing: nothing here outlives the process.
  public func flush() throws(RepositoryError) { try checkOpen() }

  /// Whether there are more tombstones than twice the limit, and a thousand.
  public var wantsCheckpoint: Bool { state.withLock { $0.isOpen && $0.tombstoneCount / 2 > $0.tombstoneLimit + 500 } }

  /// Forgets tombstones over the limit; there is no journal to fold.
  public func checkpoint() throws(RepositoryError) {
    try checkOpen()
    state.withLock { if !$0.isReadOnly { $0.forgetOldTombstones() } }
  }

  private func checkOpen() throws(RepositoryError) {
    guard state.withLock({ $0.isOpen }) else { throw RepositoryError(.closed, file: name) }
  }

  /// Counts what is there.
  public func verify() -> VerifyReport {
    state.withLock { state in
      VerifyReport(
        commit: state.commit, recordCount: state.recordCount, tombstoneCount: state.tombstoneCount)
    }
  }

  /// Refuses: there is no file to copy.
  ///
  /// - Throws: `.unsupported`, `.closed`.
  public func backup(to url: URL) throws(RepositoryError) {
    try checkOpen()
    throw RepositoryError(.unsupported, "a store in memory has no file to back up", file: name)
  }

  /// Hands over the records in the order of their addresses.
  ///
  /// - Throws: `.closed`.
  public func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try checkOpen()
    var report = state.withLock { $0 }.read(visit)
    report.isNew = false
    return report
  }

  /// Does nothing: memory has no lock.
  public func suspend() throws(RepositoryError) { try checkOpen() }

  /// Does nothing: nobody else can have written.
  public func resume() throws(RepositoryError) -> Bool {
    try checkOpen()
    return true
  }

  /// Ends the use of the store, and leaves the contents as they are.
  public func abandon() { state.withLock { $0.isOpen = false } }

  /// Ends the use of the store; the contents stay for the next open.
  public func close() throws(RepositoryError) {
    state.withLock { state in
      if !state.isReadOnly { state.forgetOldTombstones() }
      state.isOpen = false
    }
  }
}

extension RepositoryError {
  /// Returns the error for a batch whose commit numbers do not follow the store's newest commit.
  public static func notConsecutive(_ batch: WriteBatch, after commit: Revision, file: String) -> RepositoryError {
    RepositoryError(.unsupported, "a batch from commit \(batch.commits.lowerBound) cannot follow commit \(commit)", file: file)
  }
}
