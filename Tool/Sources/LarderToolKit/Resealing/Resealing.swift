package import Foundation
@_spi(Inspection) package import Larder

/// The taking over of a JSON file that was edited by hand: its differences, and new checksums.
package struct Resealing: Answer {
  private let file: StoreFile
  /// Whether the file was written anew.
  package let isWritten: Bool
  /// The path that the edited file has now; `nil` where nothing was written.
  private let old: String?
  private let differences: [Difference]
  private let missing: Int
  /// Whether the file was as Larder writes it.
  private let isSealed: Bool

  /// A record that differs.
  private struct Difference {
    let word: String
    let address: RecordAddress
    /// The names of the members that differ; `nil` where the record before is not known.
    let members: [String]?
  }

  /// The options of a resealing.
  package struct Options: Sendable {
    /// Whether the file is written anew.
    package var isAccepted = false
    /// A copy of the store from before the edit, such as a backup, which tells what was changed.
    package var original: StoreFile?

    /// Makes options.
    package init() {}
  }

  /// Compares a file with its checksums, and makes them anew if that is accepted.
  ///
  /// Records that were changed get a revision of their own, so that whoever follows the store reads them again.
  /// - Throws: `.unsupported` for a database, and while a journal is beside the file; `.locked` while an app has the store open;
  ///   `.corrupted` for what is not the JSON of a store.
  package init(of file: StoreFile, _ options: Options, now: Date) throws(RepositoryError) {
    self.file = file
    guard file.kind == .jsonFile else {
      throw RepositoryError(.unsupported, "expected a JSON file, found a database: change it through an app, or by `load`", file: file.path)
    }
    try Self.checkJournal(of: file)
    let place = StorePlace(of: file)
    let locks = options.isAccepted ? try place.lock() : nil
    defer { locks?.release() }
    try StoreUse(of: file).check(unless: locks != nil)
    let edited = try ProgressLine.during("reading", file.path) { _ throws(RepositoryError) in try EditedFile(path: file.path) }
    var before: [RecordAddress: StoredRecord]?
    if let original = options.original {
      let reading = try StoreReading(original)
      guard reading.report.storeID == edited.storeID, reading.report.commit.number <= edited.commit else {
        throw RepositoryError(.unsupported, "expected an earlier copy of the same store, found another one", file: original.path)
      }
      before = Dictionary(reading.records.map { ($0.address, $0) }) { $1 }
    }
    let commit = edited.commit + 1
    let removed = Self.removed(edited, before, commit)
    missing = max(0, (edited.sealedCount ?? edited.entries.count) - edited.entries.values.count { !$0.isNew } - removed.count)
    differences = Self.differences(edited, before, removed)
    isSealed = differences.isEmpty && missing == 0 && StoreVerdict(ofStoreAt: file.path).status == .success
    guard options.isAccepted, !isSealed else {
      (isWritten, old) = (false, nil)
      return
    }
    let records = edited.entries.values.map { $0.isUntouched ? $0.record : $0.record.renewed(at: commit) } + removed
    let aside = place.asideName(now, "edited")
    let draft = try StoreDraft(replacing: file)
    // Records that vanished without a name are deletions that nobody will hear of.
    let since = missing > 0 || edited.sealedCount == nil ? commit : edited.tombstonesSince
    let copy = JSONFileCopy(storeID: edited.storeID, generation: edited.generation + 1, commit: commit, tombstonesSince: since)
    try draft.complete { () throws(RepositoryError) in
      try ProgressLine.during("writing", file.path) { _ throws(RepositoryError) in
        try copy.write(records.sorted { $0.address < $1.address }, to: draft.file.path, in: POSIXFileSystem())
      }
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

  /// Returns the tombstones of records that were removed, where it is known which those were.
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
      let isAdded = before == nil ? entry.isNew : old?.value == nil
      let members = old.flatMap { old in Self.members(of: old.json, and: entry.record.json) }
      found.append(Difference(word: isAdded ? "added" : "changed", address: entry.record.address, members: members))
    }
    return found.sorted { $0.address < $1.address }
  }

  /// Returns the names of the members that differ between two objects; `nil` for other values.
  private static func members(of left: JSONValue?, and right: JSONValue?) -> [String]? {
    guard let left = left?.objectValue, let right = right?.objectValue else { return nil }
    return Set(left.names + right.names).filter { name in
      let (one, other): (JSONValue?, JSONValue?) = (left[name], right[name])
      return one != other
    }.sorted()
  }

  /// Nothing differs or it was taken over; something differs and was not.
  package var status: ExitStatus { isWritten || isSealed ? .success : .negative }

  /// A line for each difference, and what was done.
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

  /// An object with `store`, `written`, `old`, `missing` and `differences`, each with `change`, `collection`, `key` and `members`.
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
