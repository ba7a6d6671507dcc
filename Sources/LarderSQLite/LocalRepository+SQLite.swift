public import Foundation
public import Larder

extension LocalRepository {
  /// Opens or creates a store in a SQLite database, with one repository.
  ///
  /// A missing file is created with mode 0600, and missing directories with mode 0700, so that only their owner has access. The collection
  /// is a table with the name of the schema, and other programs can read that table. Use `Store.open` with a `SQLiteBackend` when several
  /// repositories share the file.
  /// - Throws: the errors of `SQLiteBackend.open`, among them `.locked`, `.alreadyOpen`, `.corrupted`, `.notOurStore` and `.newerSchema`.
  ///   `.unsupported` for a schema that cannot be stored.
  public init(
    sqliteFile: URL, schema: RepositorySchema<Item> = .init(), options: StoreOptions = .init()
  ) async throws(RepositoryError) {
    try await self.init(backend: SQLiteBackend(file: sqliteFile), schema: schema, options: options)
  }
}
