// History/ lists what a store still knows of its commits.
// Invariant: it says where the list begins, so that a missing commit is not taken for one that never was. Called by `history`.

internal import Foundation
@_spi(Inspection) package import Larder

/// The commits that a store still knows, the newest first.
package struct StoreHistory: Sendable {
  /// A change of one record.
  package struct Change: Sendable {
    let record: StoredRecord
    /// The offset of the frame in the journal; `nil` for a change that is known by the record alone.
    let offset: Int?
  }

  /// The changes.
  package let changes: [Change]
  private let file: StoreFile
  /// The commit behind which every change is listed; `nil` where only the newest change of each record is known.
  private let base: UInt64?

  /// Reads the journal of a JSON file; of a SQLite database, the records and tombstones in the order of their revisions.
  /// - Parameter limit: The most changes to return; `nil` for all.
  /// - Throws: `.corrupted` for a damaged journal, or that of another store; otherwise what reading the store throws.
  package init(_ file: StoreFile, limit: Int?) throws(RepositoryError) {
    self.file = file
    var found: [Change] = []
    switch file.kind {
    case .jsonFile:
      let inspection = try ProgressLine.during("reading", file.path) { _ throws(RepositoryError) in try JSONFileInspection(file: file.url) }
      if let journal = inspection.journal, journal.storeID != inspection.storeID {
        throw RepositoryError(.corrupted, "expected the journal of this store, found one of another store", file: file.path + "-journal")
      }
      for frame in inspection.journal?.frames ?? [] {
        found += frame.records.map { Change(record: $0, offset: frame.offset) }
      }
      base = inspection.journal?.base ?? inspection.commit.number
      found.reverse()
    case .sqliteFile:
      found = try StoreReading(file).records.sorted { $0.revision > $1.revision }.map { Change(record: $0, offset: nil) }
      base = nil
    }
    changes = Array(found.prefix(limit ?? .max))
  }

  /// The remark on where the list begins.
  package var remark: String {
    guard let base else {
      return "A SQLite database keeps no history: these are the newest changes of its records, and the deletions that it still knows."
    }
    return "The journal holds the commits after \(base); earlier ones are in the main file, without their order."
  }

  /// The changes as a table.
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

  /// The changes as JSON, each on a line.
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
