internal import Foundation
package import Larder

/// Writing of records to a new or an existing store, with the counts of added, changed, deleted and unchanged ones.
package struct RecordLoading: Answer {
  private let source: String
  private let target: String
  private let isNew: Bool
  private let isDry: Bool
  private var counts = Counts()
  /// Error that ended the writing after some batches were committed.
  ///
  /// The committed batches stay.
  package private(set) var failure: RepositoryError?
  /// Number of changes to an existing store, and of those that were committed.
  private var changes = (all: 0, committed: 0)

  /// Numbers of records by the effect of the loading.
  private struct Counts {
    var added = 0
    var changed = 0
    var deleted = 0
    var unchanged = 0
  }

  /// Loads a dump into a new or an existing store.
  ///
  /// A new store gets the revisions of the dump, and its final name only when it is complete. In an existing store, each record gets the
  /// revision of the commit that writes it, and records that are already there with the same bytes are skipped. Repeat an interrupted run
  /// with
  /// the same command.
  package init(dump path: String, to target: StoreFile, isDry: Bool, _ progress: (Int) -> Void = { _ in }) throws(RepositoryError) {
    let dump = try ProgressLine.during("reading", path) { _ throws(RepositoryError) in try DumpLines(path: path) }
    let contents = StoreContents(records: dump.records, commit: dump.commit, horizon: dump.horizon)
    try self.init(contents, from: path, to: target, isDry: isDry, progress)
  }

  /// Writes records to a store.
  ///
  /// For a new store, their revisions must not exceed the newest commit of `contents`.
  init(
    _ contents: StoreContents, from source: String, to target: StoreFile, isDry: Bool, _ progress: (Int) -> Void
  ) throws(RepositoryError) {
    self.source = source
    self.target = target.path
    self.isDry = isDry
    isNew = !Self.exists(target)
    if isNew {
      (counts.added, counts.deleted) = (contents.recordCount, contents.tombstoneCount)
      if !isDry { try StoreDraft(of: target).fill(contents, progress) }
    } else {
      try add(contents.records, to: StoreFile(path: target.path), progress)
    }
  }

  /// Returns true if there is a store or a part of one.
  ///
  /// The backend then refuses an incomplete one.
  private static func exists(_ target: StoreFile) -> Bool {
    // A lone journal or log is a damaged store, which its backend refuses with the right error.
    ["", "-journal", "-wal"].contains { FileManager.default.fileExists(atPath: target.path + $0) }
  }

  // MARK: A store that is there

  // A backend takes batches of up to 65,536 records. Smaller ones lose less progress when a run is interrupted.
  private static let batchSize = (records: 4_096, bytes: 16 << 20)

  private mutating func add(_ records: [StoredRecord], to file: StoreFile, _ progress: (Int) -> Void) throws(RepositoryError) {
    let backend = file.backend
    var present: [RecordAddress: StoredRecord] = [:]
    let report = try ProgressLine.during("reading", file.path) { step throws(RepositoryError) in
      // A dry run reads beside a running app. A real one needs the lock, so that no app commits in between.
      try backend.open(StoreOptions(access: isDry ? .readOnly : .exclusive)) { record in
        present[record.address] = record
        step()
      }
    }
    do throws(RepositoryError) {
      let changes = changes(records, to: present)
      // The counts are complete at this point. `recover` would be the first write.
      guard !isDry else { return backend.abandon() }
      self.changes.all = changes.count
      var commit = try backend.recover(report).commit.number
      // The commits that follow must stay within the 63 bits that both kinds of stores keep.
      guard commit <= RecordRules.lastCommit else {
        throw RepositoryError(
          .unsupported, "expected a store with commits up to \(RecordRules.lastCommit), found commit \(commit): import into a new one",
          file: file.path)
      }
      var (start, size) = (0, 0)
      for (index, record) in changes.enumerated() {
        size += record.value?.count ?? 0
        guard index == changes.count - 1 || index - start + 1 >= Self.batchSize.records || size >= Self.batchSize.bytes else { continue }
        commit += 1
        // A record gets the revision of its commit, so that readers of the store's changes see it.
        let part = changes[start...index].map { $0.renewed(at: commit) }
        try backend.commit(WriteBatch(records: part, commits: commit...commit))
        self.changes.committed += part.count
        progress(part.count)
        (start, size) = (index + 1, 0)
      }
    } catch {
      // The committed batches are durable. The first error is reported, and one of closing would hide it.
      do throws(RepositoryError) { try backend.close() } catch {}
      return try end(with: error)
    }
    // A failed close after the last batch is a failure too, since the lock or the journal may be left.
    do throws(RepositoryError) { try backend.close() } catch { try end(with: error) }
  }

  /// Ends the loading with an error, which is kept if some batches may have been committed.
  /// - Throws: The error, if nothing was written.
  private mutating func end(with error: RepositoryError) throws(RepositoryError) {
    guard changes.committed > 0 || error.code == .outcomeUnknown else { throw error }
    failure = error
  }

  /// Returns the records that differ from those in the store, and counts all of them.
  private mutating func changes(_ records: [StoredRecord], to present: [RecordAddress: StoredRecord]) -> [StoredRecord] {
    records.filter { record in
      let old = present[record.address]
      if record.value == nil {
        // Deleting a record that does not exist would only add a tombstone.
        if old?.value == nil { counts.unchanged += 1 } else { counts.deleted += 1 }
        return old?.value != nil
      }
      if old?.value == record.value, old?.schemaVersion == record.schemaVersion {
        counts.unchanged += 1
        return false
      }
      if old?.value == nil { counts.added += 1 } else { counts.changed += 1 }
      return true
    }
  }

  // MARK: The answer

  /// `.success`, or `.incomplete` if an error ended the loading.
  package var status: ExitStatus { failure == nil ? .success : .incomplete }

  /// Returns a line with the counts, or with the progress up to an error.
  package func lines(width: Int?) -> [String] {
    guard failure == nil else {
      return [
        "\(source): not loaded as a whole into \(target): \(changes.committed) of \(changes.all) changes are committed and stay; "
          + "the same command again does the rest"
      ]
    }
    return [
      "\(source): \(isDry ? "would be loaded" : "loaded") into \(isNew ? "the new store " : "")\(target): \(counts.added) added, "
        + "\(counts.changed) changed, \(counts.deleted) deleted, \(counts.unchanged) unchanged"
    ]
  }

  /// JSON object with `source`, `target`, `written`, `new`, `added`, `changed`, `deleted` and `unchanged`.
  ///
  /// If an error ended the loading, it has `error`, `committed` and `notCommitted` in place of the four counts.
  package var json: JSONValue {
    var body = JSONObject()
    body["source"] = JSONValue(source)
    body["target"] = JSONValue(target)
    body["written"] = JSONValue(!isDry)
    body["new"] = JSONValue(isNew)
    if let failure {
      body["error"] = ErrorReport(failure).json["error"]
      body["committed"] = JSONValue(changes.committed)
      body["notCommitted"] = JSONValue(changes.all - changes.committed)
    } else {
      body["added"] = JSONValue(counts.added)
      body["changed"] = JSONValue(counts.changed)
      body["deleted"] = JSONValue(counts.deleted)
      body["unchanged"] = JSONValue(counts.unchanged)
    }
    return .object(body)
  }
}

extension StoredRecord {
  /// Returns a copy of the record with another revision.
  func renewed(at commit: UInt64) -> StoredRecord {
    StoredRecord(collection: collection, key: key, revision: Revision(commit), schemaVersion: schemaVersion, value: value)
  }
}
