internal import Foundation
package import Larder
@_spi(Inspection) internal import LarderSQLite

/// Everything that a store holds at one moment, read beside whoever writes it.
package struct StoreReading: Sendable {
  /// The store.
  package let file: StoreFile
  /// The findings of opening it.
  package let report: OpenReport
  /// The records and tombstones, by the bytes of the collection, then of the key.
  package let records: [StoredRecord]

  /// The number of attempts to read files that are written meanwhile.
  private static let attempts = 20

  /// Reads a store without a lock and without changing anything.
  ///
  /// The backends notice a writer that has come in between, and read again. Where that was not enough, and the files have changed since,
  /// all is read again here.
  package init(_ file: StoreFile) throws(RepositoryError) {
    var attempt = 1
    while true {
      let before = FilesState(file)
      do throws(RepositoryError) {
        let (report, records) = try Self.read(file)
        (self.file, self.report) = (file, report)
        self.records = records.sorted { $0.address < $1.address }
        return
      } catch {
        if attempt == Self.attempts || FilesState(file) == before { throw error }
        attempt += 1
      }
    }
  }

  /// Reads the store at a path.
  package init(path: String) throws(RepositoryError) { try self.init(StoreFile(path: path)) }

  private static func read(_ file: StoreFile) throws(RepositoryError) -> (OpenReport, [StoredRecord]) {
    var found: [StoredRecord] = []
    let report = try ProgressLine.during("reading", file.path) { step throws(RepositoryError) in
      let visit = { (record: StoredRecord) in
        found.append(record)
        step()
      }
      return switch file.kind {
      case .jsonFile: try JSONFileBackend(file: file.url).open(StoreOptions(access: .readOnly), visit)
      case .sqliteFile: try SQLiteInspection(file: file.url).readAll(visit)
      }
    }
    return (report, found)
  }
}

/// The state of a store's files by which a writer shows.
private struct FilesState: Equatable {
  private struct Entry: Equatable {
    let inode: UInt64
    let size: Int64
    let seconds, nanoseconds: Int
  }
  private let entries: [Entry?]

  init(_ file: StoreFile) {
    entries = ["", "-journal", "-wal"].map { ending in
      var status = stat()
      guard lstat(file.path + ending, &status) == 0 else { return nil }
      #if canImport(Darwin)
        let time = status.st_mtimespec
      #else
        let time = status.st_mtim
      #endif
      return Entry(inode: UInt64(status.st_ino), size: Int64(status.st_size), seconds: time.tv_sec, nanoseconds: time.tv_nsec)
    }
  }
}
