internal import Foundation

extension Store {
  /// Copies all records to a new store of any backend, such as from a JSON file to SQLite, or back.
  ///
  /// ```swift
  /// let store = try await Store.open(JSONFileBackend(file: json))
  /// try await store.copy(to: SQLiteBackend(file: database))
  /// ```
  ///
  /// The copy has every record of every collection as its stored bytes, including records that do not decode or are over a limit. The copy
  /// also has the revisions, the schema versions, and the tombstones that are still kept. A compare-and-set with a revision that was read
  /// before the copy therefore succeeds in the copy as in the source store, and ``LocalRepository/changes(since:)`` resumes from such a
  /// revision. The copy is a store of its own, with another ``OpenReport/storeID``.
  ///
  /// The target gets all records or none, even if the call throws or the process ends meanwhile, because the records are one commit of the
  /// target. The target is read back and verified before the call returns. After a call that has failed or was interrupted, delete the
  /// files of the target before you call `copy(to:)` again, because they may lack the revision from which
  /// ``LocalRepository/changes(since:)`` can resume.
  ///
  /// The copy holds the state of one commit, and the target is closed when the call returns. The source store does not change, and you can
  /// use it during the copy.
  ///
  /// Cost: the call reads the whole source store, whose writes wait meanwhile and whose reads do not. Then `copy(to:)` writes and reads the
  /// copy, while the source store accepts writes again. During the call, memory holds all records a second time.
  /// - Parameter target: A backend that is not open, for a file that does not exist yet or for an empty store.
  /// - Returns: The report of reading the copy back, which has no problems.
  /// - Throws: `.alreadyExists` for a target that already holds records or commits, which stays unchanged. `.tooLarge` if the target cannot
  ///   hold all records in one commit (2 GiB and 16 million records for a JSON file). `.full` if the disk has no space. `.unsupported` for
  ///   a store whose backend cannot be read again. See <doc:Errors>.
  @discardableResult
  public func copy(to target: any StorageBackend) async throws(RepositoryError) -> VerifyReport {
    let contents = try await core.maintain { [core] (backend) throws(RepositoryError) in
      let contents = try StoreContents(of: backend)
      // A backend whose `readAll` returns less than was committed would give a copy with records missing.
      guard contents.commit.number >= core.state.commit else {
        throw RepositoryError(
          .unsupported, "expected commit \(core.state.commit) from `readAll` of the backend, found commit \(contents.commit)",
          file: backend.name)
      }
      return contents
    }
    // The target is written on a separate thread, so that the source store accepts writes meanwhile.
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
  /// Call this initializer only on the backend's executor, between two commits.
  init(of backend: any StorageBackend) throws(RepositoryError) {
    var found: [StoredRecord] = []
    let report = try backend.readAll { found.append($0) }
    commit = report.commit
    // Tombstones up to the horizon (the newest commit whose tombstones may have been dropped) are left out, because the remaining ones of
    // that time would be incomplete.
    records = found.filter { $0.value != nil || $0.revision > report.tombstoneHorizon }
    recordCount = records.count { $0.value != nil }
    tombstoneCount = records.count - recordCount
    guard report.tombstoneHorizon > .zero else { return }
    // A backend has no call that sets the horizon, the commit up to which tombstones were dropped. One more tombstone, older than all
    // others, is added to the copy to mark the horizon. The target's limit of tombstones is one less than the number of its tombstones, so
    // the target's checkpoint drops the oldest tombstone and takes its revision as the horizon. In a store without records and tombstones,
    // the collection of the added tombstone does not matter.
    let key = RecordKey("larder-horizon-\(UUID().uuidString)")
    records.append(
      StoredRecord(
        collection: found.first?.collection ?? "horizon", key: key, revision: report.tombstoneHorizon, schemaVersion: 1, value: nil))
  }

  /// Records in the order of their commits, as a `WriteBatch` requires.
  private var ordered: [StoredRecord] { records.sorted { $0.revision < $1.revision } }

  /// Writes all records and tombstones to a target backend that is new or empty, verifies the target, and closes it.
  func fill(_ target: any StorageBackend) throws(RepositoryError) -> VerifyReport {
    try openEmpty(target)
    do throws(RepositoryError) {
      if !records.isEmpty {
        try target.commit(WriteBatch(records: ordered, commits: 1...max(commit.number, 1), durability: .durable))
        // The target gets its horizon (the commit up to which tombstones were dropped) only from a checkpoint, which drops the oldest
        // tombstone.
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
      // An error of `close` is ignored, because the caller needs the earlier error, which says why the copy failed. Closing the target
      // loses nothing, because a commit that has returned is durable.
      do throws(RepositoryError) { try target.close() } catch {}
      throw error
    }
  }

  private func openEmpty(_ target: any StorageBackend) throws(RepositoryError) {
    var isEmpty = true
    // The target may keep exactly as many tombstones as are copied, so that its checkpoint drops only the one that marks the horizon.
    let options = StoreOptions(limits: .init(tombstones: tombstoneCount))
    let report = try target.open(options) { _ in isEmpty = false }
    do throws(RepositoryError) {
      guard isEmpty, report.commit == .zero else {
        throw RepositoryError(
          .alreadyExists, "expected no store, or an empty one, to copy to; found one at commit \(report.commit)", file: target.name)
      }
      _ = try target.recover(report)
    } catch {
      // `abandon()` is called and not `close()`, because `close()` could write to a target that was refused.
      target.abandon()
      throw error
    }
  }
}

extension StorageBackend {
  /// Reads the backend's own main file with ``readCopy(at:_:)``.
  ///
  /// The default implementation of `readAll` suits a backend that keeps a store in files and implements ``readCopy(at:_:)``.
  public func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try readCopy(at: URL(fileURLWithPath: name, isDirectory: false), visit)
  }
}
