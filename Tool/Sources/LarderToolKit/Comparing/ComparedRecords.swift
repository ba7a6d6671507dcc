// Comparing/ finds the differences between two stores, of any kinds, or a store and a dump.
// Invariant: two stores that a copy made alike have no differences. Called by the command `diff`.

internal import Foundation
package import Larder

/// One side of a comparison: the records of a store, or of a dump.
package struct ComparedRecords: Sendable {
  /// The records that are not deleted, in the order of their addresses.
  let records: [StoredRecord]
  /// The names of the collections: those of deleted records, too, and those that a dump was made of.
  private let collections: Set<String>

  /// Reads the store or the dump at a path.
  /// - Throws: `.decodingFailed` for a dump that was interrupted, since every record behind its end would count as removed.
  package init(path: String) throws(RepositoryError) {
    let all: [StoredRecord]
    var collections: Set<String> = []
    if try Self.isDump(path) {
      let dump = try ProgressLine.during("reading", path) { _ throws(RepositoryError) in try DumpReader(path: path) }
      guard dump.isComplete else {
        throw RepositoryError(
          .decodingFailed,
          "expected \(counted(dump.header.lineCount, "record")) in the dump, found \(dump.records.count): "
            + "continue it with `larder dump --resume`", file: path, offset: UInt64(dump.end))
      }
      all = dump.records
      collections = Set(dump.header.collections)
    } else {
      all = try StoreReading(path: path).records
    }
    self.init(all, collections)
  }

  /// Takes records in the order of their addresses, and names of collections without records.
  init(_ records: [StoredRecord], _ collections: Set<String> = []) {
    self.records = records.filter { $0.value != nil }
    self.collections = collections.union(records.lazy.map(\.collection))
  }

  /// Refuses a name that no collection of two sides has: it would make them equal without a look at a record.
  /// - Throws: `.unsupported` with the nearest name.
  package static func check(_ names: [String], _ old: ComparedRecords, _ new: ComparedRecords) throws(RepositoryError) {
    let known = old.collections.union(new.collections).sorted()
    for name in names where !known.contains(name) {
      let question = NearestName.question(about: name, among: known)
      let found = known.isEmpty ? "none" : known.joined(separator: ", ")
      throw RepositoryError(.unsupported, "expected a collection of one of the two, found no \"\(name)\"; they have \(found)\(question)")
    }
  }

  private static func isDump(_ path: String) throws(RepositoryError) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
    let beginning = try StoreRecognition.beginning(of: URL(fileURLWithPath: path, isDirectory: false))
    return beginning.starts(with: Data(DumpHeader.opening.utf8))
  }
}
