// Comparing/ finds the differences between two sides, each of them a store of either kind or a dump.
// Invariant: a store and its copy have no differences. Called by the command `diff`.

internal import Foundation
package import Larder

/// One side of a comparison: the records of a store, or of a dump.
package struct ComparedRecords: Sendable {
  /// Live records, without tombstones, sorted by address.
  let records: [StoredRecord]
  /// Names of all collections of this side.
  ///
  /// They include collections that hold only tombstones, and the ones in a dump's header.
  private let collections: Set<String>

  /// Reads the store or the dump at `path`.
  ///
  /// - Throws: `.decodingFailed` for an incomplete dump. Its missing records would otherwise count as removed.
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
      // A collection that was dumped and had no live record leaves no line, and `check` must still accept its name.
      collections = Set(dump.header.collections)
    } else {
      all = try StoreReading(path: path).records
    }
    self.init(all, collections)
  }

  /// Creates a side from records that are sorted by address, and from the names of collections that may have no records.
  init(_ records: [StoredRecord], _ collections: Set<String> = []) {
    self.records = records.filter { $0.value != nil }
    self.collections = collections.union(records.lazy.map(\.collection))
  }

  /// Checks that each name is a collection of at least one of the two sides.
  ///
  /// A mistyped name would select no record on either side, and the two would count as equal.
  /// - Throws: `.unsupported` with the nearest existing name.
  package static func check(_ names: [String], _ old: ComparedRecords, _ new: ComparedRecords) throws(RepositoryError) {
    // Sorted, because a set has no order and the error lists the names.
    let known = old.collections.union(new.collections).sorted()
    for name in names where !known.contains(name) {
      let question = NearestName.question(about: name, among: known)
      let found = known.isEmpty ? "none" : known.joined(separator: ", ")
      throw RepositoryError(.unsupported, "expected a collection of one of the two, found no \"\(name)\"; they have \(found)\(question)")
    }
  }

  private static func isDump(_ path: String) throws(RepositoryError) -> Bool {
    var status = stat()
    // Only a plain file is opened. Opening a pipe would block until a writer appears.
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
    let beginning = try StoreRecognition.beginning(of: URL(fileURLWithPath: path, isDirectory: false))
    return beginning.starts(with: Data(DumpHeader.opening.utf8))
  }
}
