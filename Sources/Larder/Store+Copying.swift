internal import Foundation

extension Store {
  /// Copies everything to a new store of any kind: from a JSON file to SQLite, and back.
  ///
  /// ```swift
  /// let store = try await Store.open(JSONFileBackend(file: json))
  /// try await store.copy(to: SQLiteBackend(file: database))
  /// ```
  ///
  /// The copy has every record of every collection as its stored bytes, those that do not decode or are over a limit included; with the
  /// revisions, the schema versions, and the tombstones that are still known. So a compare-and-set with a revision from before goes
  /// through, and ``LocalRepository/changes(since:)`` resumes, in the copy as in this store. It is a store of its own, with another
  /// ``OpenReport/storeID``.
  ///
  /// All or nothing: the records are one commit of the target, which is read back and compared before this returns. If it throws, or the
  /// process ends before, the target holds nothing or everything; delete what it has made before the call is repeated, since
  /// the range in which ``LocalRepository/changes(since:)`` can resume may be missing in it.
  ///
  /// The copy is of one commit, and its target is closed when this returns. This store stays as it is, and may be used meanwhile.
  ///
  /// Cost: reads the whole store, while its writes wait and its reads do not; then writes and reads the copy, beside both. All records
  /// are in memory once more meanwhile.
  /// - Parameter target: A backend that is not open, for a file that does not exist yet or for an empty store.
  /// - Returns: What reading the copy back has found, without problems.
  /// - Throws: `.alreadyExists` for a target that holds something, which is left as it was; `.tooLarge` when the target cannot hold
  ///   everything in one commit (2 GiB and 16 million records for a JSON file); `.unsupported` for a store whose backend cannot be read
  ///   again; `.full` and what else opening and writing the target throw; `.inputOutput`, `.corrupted`, `.poisoned` and `.closed` of this
  ///   store.
  @discardableResult
  public func copy(to target: any StorageBackend) async throws(RepositoryError) -> VerifyReport {
    let contents = try await core.maintain { [core] (backend) throws(RepositoryError) in
      let contents = try StoreContents(of: backend)
      guard contents.commit.number >= core.state.commit else {
        throw RepositoryError(
          .unsupported, "expected commit \(core.state.commit) from `readAll` of the backend, found commit \(contents.commit)",
          file: backend.name)
      }
      return contents
    }
    return try await StoreExecutor(label: "larder.copy").run { () throws(RepositoryError) in try contents.fill(target) }
  }
}

/// Everything that a store holds at one commit, as backends see it.
struct StoreContents: Sendable {
  private var records: [StoredRecord]
  let commit: Revision
  private let recordCount: Int
  private let tombstoneCount: Int

  /// Reads an open backend again.
  ///
  /// On its executor only, between two commits.
  init(of backend: any StorageBackend) throws(RepositoryError) {
    var found: [StoredRecord] = []
    let report = try backend.readAll { found.append($0) }
    commit = report.commit
    // A deletion up to the horizon says nothing: others of that time are forgotten.
    records = found.filter { $0.value != nil || $0.revision > report.tombstoneHorizon }
    recordCount = records.count { $0.value != nil }
    tombstoneCount = records.count - recordCount
    guard report.tombstoneHorizon > .zero, let some = found.first else { return }
    // The seam has no call that sets the horizon. But a target that may keep as many tombstones as there are forgets this one, which is
    // older than all of them, at its checkpoint, and remembers its revision as the horizon.
    let key = RecordKey("larder-horizon-\(UUID().uuidString)")
    records.append(
      StoredRecord(
        collection: some.collection, key: key, revision: report.tombstoneHorizon, schemaVersion: some.schemaVersion, value: nil))
  }

  /// The records in the order of their commits, as a batch has them.
  private var ordered: [StoredRecord] { records.sorted { $0.revision < $1.revision } }

  /// Writes everything to a target that is new or empty, and closes it.
  func fill(_ target: any StorageBackend) throws(RepositoryError) -> VerifyReport {
    try openEmpty(target)
    do throws(RepositoryError) {
      if !records.isEmpty {
        try target.commit(WriteBatch(records: ordered, commits: 1...max(commit.number, 1), durability: .durable))
        try target.checkpoint()
      }
      let report = target.verify()
      if let problem = report.problems.first { throw problem }
      guard report.recordCount == recordCount else {
        throw RepositoryError(
          .corrupted, "expected \(recordCount) records in the copy, found \(report.recordCount); delete it and copy again",
          file: target.name)
      }
      try target.close()
      return report
    } catch {
      // The failure is what the caller must hear of; what was committed is durable, and what was not is not there.
      do throws(RepositoryError) { try target.close() } catch {}
      throw error
    }
  }

  private func openEmpty(_ target: any StorageBackend) throws(RepositoryError) {
    var isEmpty = true
    let options = StoreOptions(limits: .init(tombstones: tombstoneCount))
    let report = try target.open(options) { _ in isEmpty = false }
    do throws(RepositoryError) {
      guard isEmpty, report.commit == .zero else {
        throw RepositoryError(
          .alreadyExists, "expected no store, or an empty one, to copy to; found one at commit \(report.commit)", file: target.name)
      }
      _ = try target.recover(report)
    } catch {
      target.abandon()
      throw error
    }
  }
}

extension StorageBackend {
  /// Reads its own main file as a copy: right for a backend that keeps a store in files and implements ``readCopy(at:_:)``.
  public func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try readCopy(at: URL(fileURLWithPath: name, isDirectory: false), visit)
  }
}
