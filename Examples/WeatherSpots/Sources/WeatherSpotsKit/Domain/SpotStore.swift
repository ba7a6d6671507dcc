public import Foundation
public import Larder
import LarderSQLite
import LarderSync

/// Everything that weather-spots keeps, in one file: the spots, and what ``WeatherService`` and ``Geocoding`` fetch for them.
public struct SpotStore: Sendable {
  /// The file's store, for transactions over both and for verifying.
  public let store: Store
  /// The spots by id.
  public let spots: LocalRepository<Spot>
  /// The server and the scope with which the store is synced; `nil` for one that is not.
  public let syncTarget: SyncTarget?

  /// Opens a store, or creates it; the name says which kind it is.
  ///
  /// A SQLite store is opened `.shared`, so that a command can work while another one runs; a JSON file has one user at a time.
  /// - Parameters:
  ///   - file: A name that ends in `.json` or `.sqlite`.
  ///   - migration: When spots of an older version are rewritten. They are read in any case; a command that lives for some milliseconds
  ///     had better not begin with it, so it is `.manual`, and `weather-spots migrate` does it.
  ///   - clock: The clock that dates changes for sync.
  ///   - pollInterval: The time between two looks for what other processes have written, each of which takes some microseconds.
  /// - Throws: What opening throws; `.locked` when another program keeps the store to itself for more than ten seconds; `.unsupported` for
  ///   another name.
  public init(
    file: URL, migration: StoreOptions.Migration = .init(mode: .manual), clock: any WallClock = SystemClock(),
    pollInterval: Duration = .milliseconds(100)
  ) async throws(RepositoryError) {
    let access: StoreOptions.Access = Self.isShared(file) ? .shared : .exclusive
    try await self.init(
      backend: Self.backend(file),
      options: StoreOptions(access: access, pollInterval: pollInterval, lockTimeout: .seconds(10), migration: migration), clock: clock
    )
  }

  /// Opens a SQLite store to read what other processes write, and never to write.
  ///
  /// It waits for no lock, but up to two seconds while another process recovers the log after a crash.
  ///
  /// - Throws: What opening throws; `.locked` when another program keeps the store to itself.
  public init(readingBeside file: URL) async throws(RepositoryError) {
    try await self.init(
      backend: Self.backend(file),
      options: StoreOptions(access: .readOnly, pollInterval: nil, lockTimeout: .zero, migration: .init(mode: .manual)))
  }

  /// Opens the store that a backend keeps.
  public init(
    backend: any StorageBackend, options: StoreOptions = .init(migration: .init(mode: .manual)), clock: any WallClock = SystemClock()
  ) async throws(RepositoryError) {
    store = try await Store.open(backend, options: options)
    syncTarget = try await store.repository(SyncTarget.schema).loadAll().first
    // Whatever writes a spot has to note it for the server.
    spots = try await store.repository(syncTarget.map { Spot.synced(in: $0.scope, clock: clock) } ?? Spot.schema)
  }

  /// Tries on every stored spot what migrating would do, and changes nothing.
  public static func dryRun(file: URL) async throws(RepositoryError) -> DryRunReport {
    try await Store.dryRun(backend(file), schema: Spot.schema)
  }

  /// Returns whether several processes can have the store of this name open at a time.
  public static func isShared(_ file: URL) -> Bool { file.pathExtension == "sqlite" }

  private static func backend(_ file: URL) throws(RepositoryError) -> any StorageBackend {
    switch file.pathExtension {
    case "json": JSONFileBackend(file: file)
    case "sqlite": SQLiteBackend(file: file)
    default: throw RepositoryError(.unsupported, "the name of a store ends in .json or .sqlite", file: file.path)
    }
  }
}
