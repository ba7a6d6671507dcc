public import Foundation
public import Larder
import LarderSQLite
import LarderSync

/// The store of weather-spots: one file with the spots and the data that ``WeatherService`` and ``Geocoding`` fetch for them.
public struct SpotStore: Sendable {
  /// The underlying store, for transactions over several repositories and for verifying the file.
  public let store: Store
  /// Repository of the spots, by id.
  public let spots: LocalRepository<Spot>
  /// Server and scope with which the store is synced, or `nil` for a store that is not synced.
  public let syncTarget: SyncTarget?

  /// Opens a store or creates it, as a JSON file or a SQLite database according to the extension of its name.
  ///
  /// A SQLite store is opened `.shared`, so that several commands can run at a time. A JSON file has one user at a time.
  /// - Parameters:
  ///   - file: A name that ends in `.json` or `.sqlite`.
  ///   - migration: When spots of an older version are rewritten. They are readable in any case. The default is `.manual`, because a
  ///     command that runs for some milliseconds should not begin with it. `weather-spots migrate` rewrites them.
  ///   - clock: The clock that dates changes for sync.
  ///   - pollInterval: The time between two checks for commits of other processes. A check takes some microseconds.
  /// - Throws: `.locked` if another program holds the store exclusively for more than ten seconds, `.unsupported` for another extension,
  ///   and the other errors of opening a store.
  public init(
    file: URL, migration: StoreOptions.Migration = .init(mode: .manual), clock: any WallClock = SystemClock(),
    pollInterval: Duration = .milliseconds(100)
  ) async throws(RepositoryError) {
    // Only SQLite can be opened `.shared`.
    let access: StoreOptions.Access = Self.isShared(file) ? .shared : .exclusive
    try await self.init(
      backend: Self.backend(file),
      options: StoreOptions(access: access, pollInterval: pollInterval, lockTimeout: .seconds(10), migration: migration), clock: clock
    )
  }

  /// Opens a SQLite store read-only, beside other processes that write to it.
  ///
  /// Opening does not wait for a lock. It waits up to two seconds while another process recovers the log after a crash.
  ///
  /// - Throws: `.locked` if another program holds the store exclusively, and the other errors of opening a store.
  public init(readingBeside file: URL) async throws(RepositoryError) {
    try await self.init(
      backend: Self.backend(file),
      // Waiting for a lock is no use to a reader such as a widget, which has to answer at once.
      options: StoreOptions(access: .readOnly, pollInterval: nil, lockTimeout: .zero, migration: .init(mode: .manual)))
  }

  /// Opens the store of a storage backend.
  public init(
    backend: any StorageBackend, options: StoreOptions = .init(migration: .init(mode: .manual)), clock: any WallClock = SystemClock()
  ) async throws(RepositoryError) {
    store = try await Store.open(backend, options: options)
    syncTarget = try await store.repository(SyncTarget.schema).loadAll().first
    // Every write of a synced store must go through the synced schema, or the change would never reach the server.
    spots = try await store.repository(syncTarget.map { Spot.synced(in: $0.scope, clock: clock) } ?? Spot.schema)
  }

  /// Runs the migration on every stored spot without writing, and reports the outcome.
  public static func dryRun(file: URL) async throws(RepositoryError) -> DryRunReport {
    try await Store.dryRun(backend(file), schema: Spot.schema)
  }

  /// Returns whether several processes can have a store with this file name open at a time.
  public static func isShared(_ file: URL) -> Bool { file.pathExtension == "sqlite" }

  private static func backend(_ file: URL) throws(RepositoryError) -> any StorageBackend {
    switch file.pathExtension {
    case "json": JSONFileBackend(file: file)
    case "sqlite": SQLiteBackend(file: file)
    default: throw RepositoryError(.unsupported, "the name of a store ends in .json or .sqlite", file: file.path)
    }
  }
}
