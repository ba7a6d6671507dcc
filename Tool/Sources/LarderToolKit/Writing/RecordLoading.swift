internal import Foundation
package import Larder

/// The loading of records into a store: new, or there already.
package struct RecordLoading: Answer {
  private let source: String
  private let target: String
  private let isNew: Bool
  private let isDry: Bool
  private var counts = Counts()
  /// The failure that ended the loading after a part of it was committed; what is committed stays.
  package private(set) var failure: RepositoryError?
  /// The number of changes to a store that is there, and of those that are committed.
  private var changes = (all: 0, committed: 0)

  /// The numbers of records, by what happens to them.
  private struct Counts {
    var added = 0
    var changed = 0
    var deleted = 0
    var unchanged = 0
  }

  /// Loads a dump.
  ///
  /// A new store gets the revisions of the dump, and its name when it is complete. In one that is there, each record gets the revision of
  /// the commit that writes it, and what is there already in the same bytes is left alone: so a run that was cut short is repeated.
  package init(dump path: String, to target: StoreFile, isDry: Bool, _ progress: (Int) -> Void = { _ in }) throws(RepositoryError) {
    let dump = try ProgressLine.during("reading", path) { _ throws(RepositoryError) in try DumpLines(path: path) }
    let contents = StoreContents(records: dump.records, commit: dump.commit, horizon: dump.horizon)
    try self.init(contents, from: path, to: target, isDry: isDry, progress)
  }

  /// Loads records; those of a new store need revisions that are not above its commit.
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

  /// Whether there is a store, or a part of one, which is then for its backend to judge.
  private static func exists(_ target: StoreFile) -> Bool {
    ["", "-journal", "-wal"].contains { FileManager.default.fileExists(atPath: target.path + $0) }
  }

  // MARK: A store that is there

  private static let batchSize = (records: 4_096, bytes: 16 << 20)

  private mutating func add(_ records: [StoredRecord], to file: StoreFile, _ progress: (Int) -> Void) throws(RepositoryError) {
    let backend = file.backend
    var present: [RecordAddress: StoredRecord] = [:]
    let report = try ProgressLine.during("reading", file.path) { step throws(RepositoryError) in
      try backend.open(StoreOptions(access: isDry ? .readOnly : .exclusive)) { record in
        present[record.address] = record
        step()
      }
    }
    do throws(RepositoryError) {
      let changes = changes(records, to: present)
      guard !isDry else { return backend.abandon() }
      self.changes.all = changes.count
      var commit = try backend.recover(report).commit.number
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
        let part = changes[start...index].map { $0.renewed(at: commit) }
        try backend.commit(WriteBatch(records: part, commits: commit...commit))
        self.changes.committed += part.count
        progress(part.count)
        (start, size) = (index + 1, 0)
      }
    } catch {
      // What was committed is durable; the failure is what must be heard of.
      do throws(RepositoryError) { try backend.close() } catch {}
      return try end(with: error)
    }
    do throws(RepositoryError) { try backend.close() } catch { try end(with: error) }
  }

  /// Ends the loading with a failure.
  /// - Throws: the failure where nothing was written.
  private mutating func end(with error: RepositoryError) throws(RepositoryError) {
    guard changes.committed > 0 || error.code == .outcomeUnknown else { throw error }
    failure = error
  }

  /// Returns what is not in the store yet, and counts.
  private mutating func changes(_ records: [StoredRecord], to present: [RecordAddress: StoredRecord]) -> [StoredRecord] {
    records.filter { record in
      let old = present[record.address]
      if record.value == nil {
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

  /// Done, would be done, or done in part.
  package var status: ExitStatus { failure == nil ? .success : .incomplete }

  /// The counts.
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

  /// An object with `source`, `target`, `written`, `new`, `added`, `changed`, `deleted` and `unchanged`.
  ///
  /// Where a failure ended the loading, it has `error`, `committed` and `notCommitted` in place of the four counts.
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
  /// Returns the record at another revision.
  func renewed(at commit: UInt64) -> StoredRecord {
    StoredRecord(collection: collection, key: key, revision: Revision(commit), schemaVersion: schemaVersion, value: value)
  }
}
