internal import Foundation
@_spi(Inspection) package import Larder
@_spi(Inspection) internal import LarderSQLite

/// Backup of a store: one file of the same kind, with the same identity and all records of one commit.
package struct StoreBackup: Answer {
  private let source: StoreFile
  private let target: StoreFile
  private let contents: StoreContents
  private let isDry: Bool

  /// Reads the source without a lock, writes the copy, and compares the two.
  /// - Throws: `.alreadyExists` if there is a file at the target, and the errors of reading and writing.
  package init(of source: StoreFile, to target: StoreFile, isDry: Bool = false) throws(RepositoryError) {
    // The name would promise the other kind of store. `convert` makes a copy of that kind.
    guard source.kind == target.kind else {
      throw RepositoryError(
        .unsupported,
        "expected a backup of the store's own kind, a \(source.kind.title), found the name of another: choose another name, or `convert`",
        file: target.path
      )
    }
    self.source = source
    self.target = target
    self.isDry = isDry
    guard !isDry else {
      contents = StoreContents(try StoreReading(source))
      return
    }
    let draft = try StoreDraft(of: target)
    var contents: StoreContents?
    try draft.complete { () throws(RepositoryError) in contents = try Self.copy(source, to: draft.file) }
    self.contents = contents ?? StoreContents(records: [], commit: 0, horizon: 0)
  }

  /// Copies a store to a new file, and compares the two.
  static func copy(_ source: StoreFile, to target: StoreFile) throws(RepositoryError) -> StoreContents {
    let copied: StoreContents
    switch source.kind {
    case .jsonFile:
      let reading = try StoreReading(source)
      guard let file = try POSIXFileSystem().open(source.path, writable: false) else {
        throw RepositoryError(.dataMissing, "there is no such file", file: source.path)
      }
      let header = try JSONFileParts.header(of: try file.read(at: 0, count: 4_096), file: source.path)
      try file.close()
      // The journal's commits are in the copy, under the newest commit. No existing journal continues it.
      let copy = JSONFileCopy(
        storeID: reading.report.storeID, generation: header.generation, commit: reading.report.commit.number,
        tombstonesSince: reading.report.tombstoneHorizon.number)
      try ProgressLine.during("copying", source.path) { _ throws(RepositoryError) in
        try copy.write(reading.records, to: target.path, in: POSIXFileSystem())
      }
      copied = StoreContents(reading)
    case .sqliteFile:
      // A store that is opened read-only would leave the log's index beside a closed database.
      try ProgressLine.during("copying", source.path) { _ throws(RepositoryError) in
        try SQLiteInspection(file: source.url).backup(to: target.url)
      }
      // The contents are those of the copy, because an app may have written to the source after it was copied.
      copied = StoreContents(try StoreReading(target))
    }
    // Checks the seal or SQLite's own structures, which the comparison of the records does not cover.
    let verdict = StoreVerdict(ofStoreAt: target.path)
    guard verdict.status == .success else {
      throw RepositoryError(.corrupted, "the copy is not sound: check the disk, and run this again", file: target.path)
    }
    try copied.compare(with: StoreContents(StoreReading(target)), at: target.path)
    return copied
  }

  /// Returns a line with both files and the number of records and tombstones.
  package func lines(width: Int?) -> [String] {
    [
      "\(source.path): \(contents.summary) \(isDry ? "would be copied" : "copied") to \(target.path)"
    ]
  }

  /// JSON object with `store`, `target`, `written`, `commit`, `records` and `tombstones`.
  package var json: JSONValue {
    [
      "store": JSONValue(source.path), "target": JSONValue(target.path), "written": JSONValue(!isDry), "commit": JSONValue(contents.commit),
      "records": JSONValue(contents.recordCount), "tombstones": JSONValue(contents.tombstoneCount),
    ]
  }
}
