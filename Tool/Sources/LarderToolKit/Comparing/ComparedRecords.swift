// Comparing/ finds the differences between two stores, of any kinds, or a store and a dump.
// Invariant: two stores that a copy made alike have no differences. Called by the command `diff`.

internal import Foundation
package import Larder

/// One side of a comparison: the records of a store, or of a dump.
package struct ComparedRecords: Sendable {
  /// The records that are not deleted, in the order of their addresses.
  let records: [StoredRecord]

  /// Reads the store or the dump at a path.
  /// - Throws: `.decodingFailed` for a dump that was interrupted, since every record behind its end would count as removed.
  package init(path: String) throws(RepositoryError) {
    let all: [StoredRecord]
    if try Self.isDump(path) {
      let dump = try ProgressLine.during("reading", path) { _ throws(RepositoryError) in try DumpReader(path: path) }
      guard dump.isComplete else {
        throw RepositoryError(
          .decodingFailed,
          "expected \(counted(dump.header.lineCount, "record")) in the dump, found \(dump.records.count): "
            + "continue it with `larder dump --resume`", file: path, offset: UInt64(dump.end))
      }
      all = dump.records
    } else {
      all = try StoreReading(path: path).records
    }
    records = all.filter { $0.value != nil }
  }

  /// Takes records in the order of their addresses.
  init(_ records: [StoredRecord]) { self.records = records.filter { $0.value != nil } }

  private static func isDump(_ path: String) throws(RepositoryError) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
    let beginning = try StoreRecognition.beginning(of: URL(fileURLWithPath: path, isDirectory: false))
    return beginning.starts(with: Data(DumpHeader.opening.utf8))
  }
}
