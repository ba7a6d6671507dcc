internal import Foundation
@_spi(Inspection) package import Larder
@_spi(Inspection) internal import LarderSQLite

/// The backup of a store: one file of the same kind, with everything and the same identity.
package struct StoreBackup: Answer {
  private let source: StoreFile
  private let target: StoreFile
  private let contents: StoreContents
  private let isDry: Bool

  /// Reads the source beside whoever uses it, writes the copy, and compares the two.
  /// - Throws: `.alreadyExists` where there is something at the target; what reading and writing throw.
  package init(of source: StoreFile, to target: StoreFile, isDry: Bool = false) throws(RepositoryError) {
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

  /// Copies a store to a file that does not exist, and compares the two.
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
      let copy = JSONFileCopy(
        storeID: reading.report.storeID, generation: header.generation, commit: reading.report.commit.number,
        tombstonesSince: reading.report.tombstoneHorizon.number)
      try ProgressLine.during("copying", source.path) { _ throws(RepositoryError) in
        try copy.write(reading.records, to: target.path, in: POSIXFileSystem())
      }
      copied = StoreContents(reading)
    case .sqliteFile:
      // A store that is opened for reading would leave the log's index beside a database that was closed.
      try ProgressLine.during("copying", source.path) { _ throws(RepositoryError) in
        try SQLiteInspection(file: source.url).backup(to: target.url)
      }
      // A writer may have gone on since the store was opened.
      copied = StoreContents(try StoreReading(target))
    }
    let verdict = StoreVerdict(ofStoreAt: target.path)
    guard verdict.status == .success else {
      throw RepositoryError(.corrupted, "the copy is not sound: check the disk, and run this again", file: target.path)
    }
    try copied.compare(with: StoreContents(StoreReading(target)), at: target.path)
    return copied
  }

  /// The counts.
  package func lines(width: Int?) -> [String] {
    [
      "\(source.path): \(contents.recordCount) records and \(contents.tombstoneCount) tombstones at commit \(contents.commit) "
        + "\(isDry ? "would be copied" : "copied") to \(target.path)"
    ]
  }

  /// An object with `store`, `target`, `written`, `commit`, `records` and `tombstones`.
  package var json: JSONValue {
    [
      "store": JSONValue(source.path), "target": JSONValue(target.path), "written": JSONValue(!isDry), "commit": JSONValue(contents.commit),
      "records": JSONValue(contents.recordCount), "tombstones": JSONValue(contents.tombstoneCount),
    ]
  }
}
