package import Foundation
@_spi(Inspection) package import Larder

/// Comparison of an edited JSON main file with its checksums, and a new file with new checksums if the changes are accepted.
package struct Resealing: Answer {
  private let file: StoreFile
  /// Whether a new file was written.
  package let isWritten: Bool
  /// Path under which the edited file is kept.
  ///
  /// `nil` if nothing was written.
  private let old: String?
  private let differences: [Difference]
  private let missing: Int
  /// Whether the file is unedited: every checksum and the seal match.
  private let isSealed: Bool

  /// Record that was added, removed or changed.
  private struct Difference {
    let word: String
    let address: RecordAddress
    /// Names of the members that differ.
    ///
    /// `nil` if the earlier record is unknown or the values are not objects.
    let members: [String]?
  }

  /// Options of the command `reseal`.
  package struct Options: Sendable {
    /// Whether a new file is written.
    package var isAccepted = false
    /// Copy of the store from before the edit, such as a backup.
    ///
    /// With it, removed records and changed members are listed by name.
    package var original: StoreFile?

    /// Creates options that only compare.
    package init() {}
  }

  /// Compares a file with its checksums, and writes a new file if the options accept the differences.
  ///
  /// Changed records get the revision of a new commit, so that readers of the store's changes read them again.
  /// - Throws: `.unsupported` for a database, and for a file with a journal beside it. `.locked` while an app has the store open.
  ///   `.corrupted` if the file is not the JSON of a store.
  package init(of file: StoreFile, _ options: Options, now: Date) throws(RepositoryError) {
    self.file = file
    guard file.kind == .jsonFile else {
      throw RepositoryError(.unsupported, "expected a JSON file, found a database: change it through an app, or by `load`", file: file.path)
    }
    // A journal may hold commits that the edited file lacks, and a new main file would leave them behind.
    try Self.checkJournal(of: file)
    let place = StorePlace(of: file)
    // Without `--accept` nothing is written, and an app that starts meanwhile must not be refused.
    let locks = options.isAccepted ? try place.lock() : nil
    defer { locks?.release() }
    try StoreUse(of: file).check(unless: locks != nil)
    let edited = try ProgressLine.during("reading", file.path) { _ throws(RepositoryError) in try EditedFile(path: file.path) }
    var before: [RecordAddress: StoredRecord]?
    if let original = options.original {
      let reading = try StoreReading(original)
      // Compared with another store's copy, every record would count as removed, and `--accept` would delete them.
      guard reading.report.storeID == edited.storeID, reading.report.commit.number <= edited.commit else {
        throw RepositoryError(.unsupported, "expected an earlier copy of the same store, found another one", file: original.path)
      }
      before = Dictionary(reading.records.map { ($0.address, $0) }) { $1 }
    }
    let commit = edited.commit + 1
    let removed = Self.removed(edited, before, commit)
    // Added records are not in the seal's count, and removed ones are, so both are taken out.
    missing = max(0, (edited.sealedCount ?? edited.entries.count) - edited.entries.values.count { !$0.isNew } - removed.count)
    differences = Self.differences(edited, before, removed)
    // A reordered or reformatted file has matching records, but a store does not open with it.
    isSealed = differences.isEmpty && missing == 0 && StoreVerdict(ofStoreAt: file.path).status == .success
    guard options.isAccepted, !isSealed else {
      (isWritten, old) = (false, nil)
      return
    }
    // Untouched records keep their revisions. Readers of the store's changes need not read them again.
    let records = edited.entries.values.map { $0.isUntouched ? $0.record : $0.record.renewed(at: commit) } + removed
    let aside = place.asideName(now, "edited")
    let draft = try StoreDraft(replacing: file)
    // Records were removed that no copy names, so they get no tombstones. The horizon makes readers of the store's changes start over.
    let since = missing > 0 || edited.sealedCount == nil ? commit : edited.tombstonesSince
    // No existing journal continues the next generation, so a crash that leaves one beside the new file cannot replay it.
    let copy = JSONFileCopy(storeID: edited.storeID, generation: edited.generation + 1, commit: commit, tombstonesSince: since)
    try draft.complete { () throws(RepositoryError) in
      try ProgressLine.during("writing", file.path) { _ throws(RepositoryError) in
        try copy.write(records.sorted { $0.address < $1.address }, to: draft.file.path, in: POSIXFileSystem())
      }
      // The draft is read back before it replaces the edited file. A disk may have written other bytes.
      guard try StoreReading(draft.file).records.count == records.count else {
        throw RepositoryError(.corrupted, "the new file is not what was written: check the disk", file: draft.file.path)
      }
    } publish: { () throws(RepositoryError) in
      try place.replace(with: draft.file.path, movingTo: aside)
    }
    (isWritten, old) = (true, aside)
  }

  private static func checkJournal(of file: StoreFile) throws(RepositoryError) {
    guard let journal = try SalvageBytes(file.path + "-journal") else { return }
    var header: JSONFileParts.Header?
    do throws(RepositoryError) {
      if let main = try SalvageBytes(file.path) { header = try JSONFileParts.header(of: Data(main.bytes.prefix(4_096)), file: file.path) }
    } catch { header = nil }  // the header was edited, too
    let other = try JournalParts.header(of: journal.bytes, file: journal.path)
    let mismatch = header.flatMap { header in other.flatMap { $0.mismatch(to: header) } }
    throw RepositoryError(
      .unsupported,
      mismatch.map { "expected no journal beside the file, found one (\($0)): move it away" }
        ?? "expected no journal beside the file, found one with commits of it: open and close the store with its app before it is edited",
      file: journal.path)
  }

  /// Returns tombstones for the records that the earlier copy has and the edited file lacks.
  ///
  /// Empty without a copy.
  private static func removed(_ edited: EditedFile, _ before: [RecordAddress: StoredRecord]?, _ commit: UInt64) -> [StoredRecord] {
    (before ?? [:]).values.filter { $0.value != nil && edited.entries[$0.address] == nil }.map {
      StoredRecord(collection: $0.collection, key: $0.key, revision: Revision(commit), schemaVersion: $0.schemaVersion, value: nil)
    }
  }

  private static func differences(
    _ edited: EditedFile, _ before: [RecordAddress: StoredRecord]?, _ removed: [StoredRecord]
  ) -> [Difference] {
    var found = removed.map { Difference(word: "removed", address: $0.address, members: nil) }
    for entry in edited.entries.values where !entry.isUntouched {
      let old = before?[entry.record.address]
      // Without a copy, only the missing checksum shows that a record is new.
      let isAdded = before == nil ? entry.isNew : old?.value == nil
      let members = old.flatMap { old in Self.members(of: old.json, and: entry.record.json) }
      found.append(Difference(word: isAdded ? "added" : "changed", address: entry.record.address, members: members))
    }
    return found.sorted { $0.address < $1.address }
  }

  /// Returns the names of the members that differ between two objects.
  ///
  /// `nil` for other values.
  private static func members(of left: JSONValue?, and right: JSONValue?) -> [String]? {
    guard let left = left?.objectValue, let right = right?.objectValue else { return nil }
    return Set(left.names + right.names).filter { name in
      let (one, other): (JSONValue?, JSONValue?) = (left[name], right[name])
      return one != other
    }.sorted()
  }

  /// `.success` if nothing differs or a new file was written, `.negative` for differences that were not accepted.
  package var status: ExitStatus { isWritten || isSealed ? .success : .negative }

  /// Returns a line for each difference, and one that says whether a new file was written.
  package func lines(width: Int?) -> [String] {
    var lines = differences.map { difference in
      let members = difference.members.map { ": \($0.joined(separator: ", "))" } ?? ""
      return "\(difference.word) \(difference.address.collection) \(TerminalText.escaped(difference.address.key.text))\(members)"
    }
    if missing > 0 { lines.append("removed \(counted(missing, "record")): --original with an earlier copy tells which") }
    if let old {
      lines.append("\(file.path): sealed anew; the edited file is kept as \(old)")
    } else if isSealed {
      lines.append("\(file.path): nothing differs from its checksums")
    } else if lines.isEmpty {
      lines.append("\(file.path): every record is whole, but the file is not as Larder writes it: --accept writes it anew")
    } else {
      lines.append("\(file.path): not sealed: --accept takes this over")
    }
    return lines
  }

  /// JSON object with `store`, `written`, `old`, `missing` and `differences`, each with `change`, `collection`, `key` and `members`.
  package var json: JSONValue {
    [
      "store": JSONValue(file.path), "written": JSONValue(isWritten), "old": old.map { JSONValue($0) } ?? .null,
      "missing": JSONValue(missing),
      "differences": .array(
        differences.map {
          [
            "change": JSONValue($0.word), "collection": JSONValue($0.address.collection), "key": JSONValue($0.address.key.text),
            "members": $0.members.map { .array($0.map { JSONValue($0) }) } ?? .null,
          ]
        }),
    ]
  }
}
