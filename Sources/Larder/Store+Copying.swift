internal import Foundation

extension Store {
  /// Copies everything to a new store of any kind: from a JSON file to SQLite, and back.
  ///
  /// ```swift
  /// let store = try await Store.open(JSONFileBackend(file: json))
  /// try await store.copy(to: SQLiteBackend(file: database))
  /// ```
  ///
  /// The copy has every record of every collection as its stored bytes, including records that do not decode or are over a limit. The copy
  /// also has the revisions, the schema versions, and the tombstones that are still kept. A compare-and-set with an earlier revision
  /// therefore succeeds, and ``LocalRepository/changes(since:)`` resumes, in the copy as in this store. The copy is a store of its own,
  /// with another ``OpenReport/storeID``.
  ///
  /// The target gets all records or none: the records are one commit of the target, which is read back and compared before the call
  /// returns. If the call throws, or the process ends before, the target holds all records or none. After a call that has failed or was
  /// interrupted, delete the files of the target before you call `copy(to:)` again, because the range in which
  /// ``LocalRepository/changes(since:)`` can resume may be missing in them.
  ///
  /// The copy is of one commit, and its target is closed when the call returns. This store stays as it is, and you can use it meanwhile.
  ///
  /// Cost: reads the whole store. Meanwhile writes to this store wait, and reads do not wait. The call then writes and reads the copy,
  /// while this store's writes go on. All records are in memory a second time meanwhile.
  /// - Parameter target: A backend that is not open, for a file that does not exist yet or for an empty store.
  /// - Returns: The report of reading the copy back, which has no problems.
  /// - Throws: `.alreadyExists` for a target that holds something, which is left as it was. `.tooLarge` if the target cannot hold
  ///   everything in one commit (2 GiB and 16 million records for a JSON file). `.full` if there is no space. `.unsupported` for a store
  ///   whose backend cannot be read again. See <doc:Errors>.
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
    // The target is written on a thread of its own, so that this store's writes go on meanwhile.
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
    // Tombstones up to the horizon are left out. The store has already dropped some tombstones of that time, so the remaining ones would be
    // incomplete.
    records = found.filter { $0.value != nil || $0.revision > report.tombstoneHorizon }
    recordCount = records.count { $0.value != nil }
    tombstoneCount = records.count - recordCount
    guard report.tombstoneHorizon > .zero else { return }
    // A backend has no call that sets the horizon, the commit up to which tombstones were dropped. To mark the horizon, one more tombstone
    // is added, older than all others. The target's limit of tombstones is one less than their number, so the target's checkpoint drops
    // this oldest tombstone and takes its revision as the horizon. In a store without records and tombstones, the tombstone's collection
    // does not matter.
    let key = RecordKey("larder-horizon-\(UUID().uuidString)")
    records.append(
      StoredRecord(
        collection: found.first?.collection ?? "horizon", key: key, revision: report.tombstoneHorizon, schemaVersion: 1, value: nil))
  }

  /// Records in the order of their commits, which a batch requires.
  private var ordered: [StoredRecord] { records.sorted { $0.revision < $1.revision } }

  /// Writes everything to a target that is new or empty, reads it back, and closes it.
  func fill(_ target: any StorageBackend) throws(RepositoryError) -> VerifyReport {
    try openEmpty(target)
    do throws(RepositoryError) {
      if !records.isEmpty {
        try target.commit(WriteBatch(records: ordered, commits: 1...max(commit.number, 1), durability: .durable))
        // Only a checkpoint drops the tombstone that marks the horizon, and so passes the horizon on to the target.
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
      // An error of `close` is ignored, because the caller needs the first error. Closing loses nothing, because a commit that returned is
      // durable.
      do throws(RepositoryError) { try target.close() } catch {}
      throw error
    }
  }

  private func openEmpty(_ target: any StorageBackend) throws(RepositoryError) {
    var isEmpty = true
    // The target may keep exactly as many tombstones as this store has, so that its checkpoint drops only the one that marks the horizon.
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
  /// The default implementation is right for a backend that keeps a store in files and implements ``readCopy(at:_:)``.
  public func readAll(_ visit: (StoredRecord) -> Void) throws(RepositoryError) -> OpenReport {
    try readCopy(at: URL(fileURLWithPath: name, isDirectory: false), visit)
  }
}
