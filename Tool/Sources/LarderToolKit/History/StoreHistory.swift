// History/ lists the changes that a store's files still record.
// Invariant: the output says at which commit the list begins, since earlier commits are unknown and not absent. Called by `history`.

internal import Foundation
@_spi(Inspection) package import Larder

/// Changes that a store's files still record, newest first.
package struct StoreHistory: Sendable {
  /// One record or tombstone as one commit wrote it.
  package struct Change: Sendable {
    let record: StoredRecord
    /// Offset of the journal's frame (the commits of one sync) that has the change.
    ///
    /// `nil` for a SQLite database, which keeps no journal.
    let offset: Int?
  }

  /// The listed changes, newest first.
  package let changes: [Change]
  private let file: StoreFile
  /// Commit after which every change is listed.
  ///
  /// `nil` for a SQLite database, which has only the newest change of each record.
  private let base: UInt64?

  /// Reads the journal of a JSON file, or the records and tombstones of a SQLite database.
  /// - Parameter limit: Maximum number of changes to return. `nil` for all.
  /// - Throws: `.corrupted` for a damaged journal, or for one of another store. Otherwise the errors of reading the store.
  package init(_ file: StoreFile, limit: Int?) throws(RepositoryError) {
    self.file = file
    var found: [Change] = []
    switch file.kind {
    case .jsonFile:
      let inspection = try ProgressLine.during("reading", file.path) { _ throws(RepositoryError) in try JSONFileInspection(file: file.url) }
      // A journal that was copied from another store would be listed as this store's history. Opening the store refuses it too.
      if let journal = inspection.journal, journal.storeID != inspection.storeID {
        throw RepositoryError(.corrupted, "expected the journal of this store, found one of another store", file: file.path + "-journal")
      }
      for frame in inspection.journal?.frames ?? [] {
        found += frame.records.map { Change(record: $0, offset: frame.offset) }
      }
      // Without a journal, every commit is folded into the main file, and the list is empty.
      base = inspection.journal?.base ?? inspection.commit.number
      // Frames are in the order of commits, and the newest change is listed first.
      found.reverse()
    case .sqliteFile:
      found = try StoreReading(file).records.sorted { $0.revision > $1.revision }.map { Change(record: $0, offset: nil) }
      base = nil
    }
    changes = Array(found.prefix(limit ?? .max))
  }

  /// Sentence that says at which commit the list begins.
  package var remark: String {
    guard let base else {
      return "A SQLite database keeps no history: these are the newest changes of its records, and the deletions that it still knows."
    }
    return "The journal holds the commits after \(base); earlier ones are in the main file, without their order."
  }

  /// Table of the changes for a terminal.
  package var table: TextTable {
    var table = TextTable(["revision", "change", "collection", "key", "bytes"] + (base == nil ? [] : ["offset"]))
    for change in changes {
      let record = change.record
      var cells = [
        TextTable.Cell(number: String(record.revision.number)), TextTable.Cell(record.value == nil ? "delete" : "save"),
        TextTable.Cell(record.collection), TextTable.Cell(record.key.text), TextTable.Cell(number: String(record.value?.count ?? 0)),
      ]
      if base != nil { cells.append(TextTable.Cell(number: change.offset.map(String.init) ?? "")) }
      table.add(cells)
    }
    return table
  }

  /// The changes as JSON, one object for each line.
  package var jsonLines: [String] {
    changes.map { change in
      var body = JSONObject()
      body["revision"] = JSONValue(change.record.revision.number)
      body["change"] = JSONValue(change.record.value == nil ? "delete" : "save")
      body["collection"] = JSONValue(change.record.collection)
      body["key"] = JSONValue(change.record.key.text)
      body["version"] = JSONValue(change.record.schemaVersion)
      body["byteCount"] = JSONValue(change.record.value?.count ?? 0)
      body["offset"] = change.offset.map { JSONValue($0) }
      return JSONValue.object(body).text
    }
  }
}
