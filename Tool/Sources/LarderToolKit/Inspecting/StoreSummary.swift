@_spi(Inspection) package import Larder
@_spi(Inspection) internal import LarderSQLite

/// Description of one store: its files and locks, and, if it can be read, its collections and journal.
package struct StoreSummary: Sendable {
  /// Path and kind of the store.
  let file: StoreFile
  /// Main file and companions of the store.
  let family: StoreFamily
  /// Processes that hold a lock on the store.
  let holders: LockHolders
  /// Report of reading the store.
  ///
  /// `nil` if it cannot be read.
  private(set) var report: OpenReport?
  /// Summaries of the collections.
  ///
  /// Empty if the store cannot be read.
  private(set) var collections: [CollectionSummary] = []
  /// Header and journal of a JSON file.
  ///
  /// `nil` for a database.
  private(set) var inspection: JSONFileInspection?
  /// Write-ahead log of a SQLite database.
  ///
  /// `nil` for a JSON file.
  private(set) var log: SQLiteInspection.Log?
  /// Error that reading the store has thrown.
  ///
  /// `nil` if it can be read.
  package private(set) var failure: RepositoryError?

  /// Describes the store at `path`.
  /// - Throws: as ``StoreFile/init(path:)``, and `.protectedDataUnavailable` if the directory cannot be read.
  package init(path: String) throws(RepositoryError) {
    file = try StoreFile(path: path)
    family = try StoreFamily(file)
    holders = LockHolders(family)
    // A store that cannot be read still has files and locks to show, so the error becomes a part of the summary.
    do throws(RepositoryError) {
      switch file.kind {
      // Header and log are read first, so that they are shown also if a record is damaged.
      case .jsonFile: inspection = try JSONFileInspection(file: file.url)
      case .sqliteFile: log = try SQLiteInspection(file: file.url).log()
      }
      let reading = try StoreReading(file)
      report = reading.report
      for name in reading.collections { collections.append(CollectionSummary(name, try reading.records(of: name))) }
    } catch {
      failure = error
    }
  }
}
