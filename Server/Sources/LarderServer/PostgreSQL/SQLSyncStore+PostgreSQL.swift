public import Logging

extension SQLSyncStore {
  /// Opens the store in a PostgreSQL database, or makes its tables there.
  ///
  /// - Parameter address: A URI or a connection string of libpq; what it leaves open comes from the `PG…` variables and files.
  /// - Throws: `.unusable` for an address that cannot be read, or tables of a newer version; `.database`.
  public static func open(
    postgreSQL address: String, options: PostgreSQLOptions = PostgreSQLOptions(), logger: Logger,
    now: @escaping @Sendable () -> Int = systemClock
  ) async throws(StoreError) -> SQLSyncStore {
    try await open(postgreSQL: address, options: options, logger: logger, now: now) { $0 }
  }

  /// - Parameter wrap: What stands between the store and its connections, for tests.
  static func open(
    postgreSQL address: String, options: PostgreSQLOptions, logger: Logger, now: @escaping @Sendable () -> Int,
    wrap: @escaping @Sendable (any SQLConnection) -> any SQLConnection
  ) async throws(StoreError) -> SQLSyncStore {
    let place = try PostgreSQLAddress(address)
    let direct = try directAddress(options, of: place)
    let opening = SQLWorkers.Opening { () throws(StoreError) in wrap(try PostgreSQLConnection.open(place, options)) }
    // A push is a transaction of its own: they wait for different heads, and the database syncs those that end at once together.
    let writers = SQLWorkers(
      "larder-write", threads: options.writers, transaction: .write,
      policy: .init(isKeyed: true, duration: .seconds(10)), open: opening)
    let readers = SQLWorkers(
      "larder-read", threads: options.readers, transaction: .read, policy: .init(duration: .seconds(10)), open: opening)
    let pokes = direct.map { PostgreSQLPokes($0, options, logger: logger) }
    let store = SQLSyncStore(writers: writers, readers: readers, pokes: pokes, logger: logger, now: now)
    do throws(StoreError) { try await store.prepareTables() } catch {
      await store.close()
      throw error
    }
    return store
  }

  private static func directAddress(
    _ options: PostgreSQLOptions, of store: PostgreSQLAddress
  ) throws(StoreError) -> PostgreSQLAddress? {
    switch options.listening {
    case .store: options.usesPooler ? nil : store
    case .at(let address): try PostgreSQLAddress(address)
    case .off: nil
    }
  }

  /// Makes the tables where they are missing; several processes may do so at once.
  private func prepareTables() async throws(StoreError) {
    for attempt in 1... {
      // Looked at first, so that a role without the right to make tables can run the server.
      do throws(StoreError) {
        if try await readers.perform({ (connection) throws(StoreError) in try SQLSchema.isCurrent(connection) }) { return }
      } catch {
        guard case .database("42P01", _) = error else { throw error }
      }
      do throws(StoreError) {
        return try await writers.perform { (connection) throws(StoreError) in try SQLSchema.migrate(connection) }
      } catch {
        // Two processes that make one table at once: PostgreSQL refuses the slower one, whatever IF NOT EXISTS says.
        guard case .database(let code, _) = error, ["23505", "42P07", "42710", "XX000"].contains(code), attempt < 10 else { throw error }
      }
    }
  }
}
