internal import Foundation
package import Larder
@_spi(Inspection) internal import LarderSQLite

/// All records of a store at one commit, read without a lock while an app may be writing.
package struct StoreReading: Sendable {
  /// Path and kind of the store.
  package let file: StoreFile
  /// Report of opening the store, with its identity and newest commit.
  package let report: OpenReport
  /// Records and tombstones, sorted by the bytes of the collection, then of the key.
  package let records: [StoredRecord]

  /// Maximum number of attempts to read files that an app writes meanwhile.
  private static let attempts = 20

  /// Reads a store without taking a lock and without changing a file.
  ///
  /// The backends detect a concurrent writer and read again a few times. If they give up and the files have changed since, this initializer
  /// starts over, at most 20 times.
  package init(_ file: StoreFile) throws(RepositoryError) {
    var attempt = 1
    while true {
      let before = FilesState(file)
      do throws(RepositoryError) {
        let (report, records) = try Self.read(file)
        (self.file, self.report) = (file, report)
        // The order of a backend is not specified. `diff`, `dump` and the lookup by key need the order of addresses.
        self.records = records.sorted { $0.address < $1.address }
        return
      } catch {
        // If the files are unchanged, no writer caused the error, and reading them again would fail again.
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
      // A read-only backend would make SQLite write the log's index beside a closed database.
      case .sqliteFile: try SQLiteInspection(file: file.url).readAll(visit)
      }
    }
    return (report, found)
  }
}

/// Identity, sizes and times of a store's files, which differ after a write.
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
        // The time finds a write that keeps the size, such as a frame in allocated space.
        let time = status.st_mtimespec
      #else
        let time = status.st_mtim
      #endif
      return Entry(inode: UInt64(status.st_ino), size: Int64(status.st_size), seconds: time.tv_sec, nanoseconds: time.tv_nsec)
    }
  }
}
