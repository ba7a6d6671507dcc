@_spi(Inspection) package import Larder
@_spi(Inspection) internal import LarderSQLite

/// The findings about one store: files and locks in any case, and what is in it as far as it can be read.
package struct StoreSummary: Sendable {
  /// The store.
  let file: StoreFile
  /// Its files.
  let family: StoreFamily
  /// The processes that have it open.
  let holders: LockHolders
  /// The findings of reading it; `nil` where it cannot be read.
  private(set) var report: OpenReport?
  /// Its collections.
  private(set) var collections: [CollectionSummary] = []
  /// The header of a JSON file, and its journal.
  private(set) var inspection: JSONFileInspection?
  /// The log of a SQLite database.
  private(set) var log: SQLiteInspection.Log?
  /// The reason for which it cannot be read.
  package private(set) var failure: RepositoryError?

  /// Looks at a store.
  /// - Throws: what recognising it throws.
  package init(path: String) throws(RepositoryError) {
    file = try StoreFile(path: path)
    family = try StoreFamily(file)
    holders = LockHolders(family)
    do throws(RepositoryError) {
      switch file.kind {
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
