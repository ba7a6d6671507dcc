internal import Foundation

extension Store {
  /// Copies everything to a new store of any kind: from a JSON file to SQLite, and back.
  ///
  /// ```swift
  /// let store = try await Store.open(JSONFileBackend(file: json))
  /// try await store.copy(to: SQLiteBackend(file: database))
  /// ```
  ///
  /// The copy has every record of every collection as its stored bytes, including records that do not decode or are over a limit. It also
  /// has the revisions, the schema versions, and the tombstones that are still kept. So a compare-and-set with an earlier revision
  /// succeeds, and ``LocalRepository/changes(since:)`` resumes, in the copy as in this store. The copy is a store of its own, with another
  /// ``OpenReport/storeID``.
  ///
  /// All or nothing: the records are one commit of the target, which is read back and compared before the call returns. If it throws, or
  /// the process ends before, the target holds nothing or everything. Then delete the files of the target before you call it again, because
  /// the range in which ``LocalRepository/changes(since:)`` can resume may be missing in them.
  ///
  /// The copy is of one commit, and its target is closed when the call returns. This store stays as it is, and you can use it meanwhile.
  ///
  /// Cost: reads the whole store, while its writes wait and its reads do not. Then it writes and reads the copy, while this store's writes
  /// go on. All records are in memory a second time meanwhile.
  /// - Parameter target: A backend that is not open, for a file that does not exist yet or for an empty store.
  /// - Returns: The report of reading the copy back, which has no problems.
  /// - Throws: `.alreadyExists` for a target that holds something, which is left as it was. `.tooLarge` if the target cannot hold
  ///   everything in one commit (2 GiB and 16 million records for a JSON file). `.full` if there is no space. `.unsupported` for a store
  ///   whose backend cannot be read again. See <doc:Errors>.
  @discardableResult
  public func copy(to target: any StorageBackend) async throws(RepositoryError) -> VerifyReport {
    let contents = try await core.maintain { [core] (backend) throws(RepositoryError) in
      let contents = try StoreContents(of: backend)
      // A backend that reads less than was committed would give a copy with records missing.
      guard contents.commit.number >= core.state.commit else {
        throw RepositoryError(
          .unsupported, "expected commit \(core.state.commit) from `readAll` of the backend, found commit \(contents.commit)",
          file: backend.name)
      }
      return contents
    }
    // On a thread of its own, so that this store's writes go on while the copy is written.
    return try await StoreExecutor(label: "larder.copy").run { () throws(RepositoryError) in try contents.fill(target) }
  }
}

/// All records and tombstones of a store at one commit, in the form that backends read and write.
struct StoreContents: Sendable {
  private var records: [StoredRecord]
  let commit: Revision
  private let recordCount: Int
  private let tombstoneCount: Int

  /// Reads the contents of an open backend again.
  ///
  /// Call it on the backend's executor only, between two commits.
  init(of backend: any StorageBackend) throws(RepositoryError) {
    var found: [StoredRecord] = []
    let report = try backend.readAll { found.append($0) }
    commit = report.commit
    // The store has forgotten some tombstones up to the horizon, so the remaining ones of that time would be incomplete.
    records = found.filter { $0.value != nil || $0.revision > report.tombstoneHorizon }
    recordCount = records.count { $0.value != nil }
    tombstoneCount = records.count - recordCount
    guard report.tombstoneHorizon > .zero, let some = found.first else { return }
    // A backend has no call that sets the horizon. This tombstone is older than all others and one more than the target may keep, so the
    // target's checkpoint forgets it and takes its revision as the horizon.
    let key = RecordKey("larder-horizon-\(UUID().uuidString)")
    records.append(
      StoredRecord(
        collection: some.collection, key: key, revision: report.tombstoneHorizon, schemaVersion: some.schemaVersion, value: nil))
  }

  /// Records in the order of their commits, which a batch requires.
  private var ordered: [StoredRecord] { records.sorted { $0.revision < $1.revision } }

  /// Writes everything to a target that is new or empty, reads it back, and closes it.
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
      // The first error is the cause. Closing after it loses nothing, because a commit that returned is durable.
      do throws(RepositoryError) { try target.close() } catch {}
      throw error
    }
  }

  private func openEmpty(_ target: any StorageBackend) throws(RepositoryError) {
    var isEmpty = true
    // Room for exactly the tombstones of this store, so that the checkpoint forgets only the one that marks the horizon.
    let options = StoreOptions(limits: .init(tombstones: tombstoneCount))
    let report = try target.open(options) { _ in isEmpty = false }
    do throws(RepositoryError) {
      guard isEmpty, report.commit == .zero else {
        throw RepositoryError(
          .alreadyExists, "expected no store, or an empty one, to copy to; found one at commit \(report.commit)", file: target.name)
      }
      _ = try target.recover(report)
    } catch {
      // Not `close()`, which could write to a target that was refused.
      target.abandon()
      throw error
    }
  }
}

extension StorageBackend {
  /// Reads the backend's own main file with ``readCopy(at:_:)``.
  ///
  /// This implementation is right for a backend that keeps a store in files and implements ``readCopy(at:_:)``.
  public func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try readCopy(at: URL(fileURLWithPath: name, isDirectory: false), visit)
  }
}
