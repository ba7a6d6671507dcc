public import Logging

extension SQLSyncStore {
  /// Opens the store in a PostgreSQL database, and creates its tables if they are missing.
  ///
  /// - Parameter address: A URI or a connection string of libpq. Missing parts come from the `PG…` variables and files.
  /// - Throws: `.unusable` for an address that cannot be read, or tables of a newer version, and `.database`.
  public static func open(
    postgreSQL address: String, options: PostgreSQLOptions = PostgreSQLOptions(), logger: Logger,
    now: @escaping @Sendable () -> Int = systemClock
  ) async throws(StoreError) -> SQLSyncStore {
    try await open(postgreSQL: address, options: options, logger: logger, now: now) { $0 }
  }

  /// - Parameter wrap: Wraps each connection, for tests.
  static func open(
    postgreSQL address: String, options: PostgreSQLOptions, logger: Logger, now: @escaping @Sendable () -> Int,
    wrap: @escaping @Sendable (any SQLConnection) -> any SQLConnection
  ) async throws(StoreError) -> SQLSyncStore {
    let place = try PostgreSQLAddress(address)
    let direct = try directAddress(options, of: place)
    let opening = SQLWorkers.Opening { () throws(StoreError) in wrap(try PostgreSQLConnection.open(place, options)) }
    // A push is a transaction of its own: shared ones would lock several heads and could deadlock, and PostgreSQL groups syncs by itself.
    let writers = SQLWorkers(
      "larder-write", threads: options.writers, transaction: .write,
      policy: .init(isKeyed: true, duration: .seconds(options.retrySeconds)), open: opening)
    let readers = SQLWorkers(
      "larder-read", threads: options.readers, transaction: .read, policy: .init(duration: .seconds(options.retrySeconds)), open: opening)
    let pokes = direct.map { PostgreSQLPokes($0, options, logger: logger) }
    let store = SQLSyncStore(writers: writers, readers: readers, pokes: pokes, logger: logger, now: now)
    do throws(StoreError) { try await store.prepareTables() } catch {
      // Ends the threads, which would otherwise outlive the failed opening.
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

  /// Creates the tables that are missing.
  ///
  /// Several processes may do so at once.
  private func prepareTables() async throws(StoreError) {
    for attempt in 1... {
      // Read first, so that a role without the right to create tables can run the server.
      do throws(StoreError) {
        if try await readers.perform({ (connection) throws(StoreError) in try SQLSchema.isCurrent(connection) }) { return }
      } catch {
        // 42P01 means that there are no tables yet.
        guard case .database("42P01", _) = error else { throw error }
      }
      do throws(StoreError) {
        return try await writers.perform { (connection) throws(StoreError) in try SQLSchema.migrate(connection) }
      } catch {
        // When two processes create one table at once, PostgreSQL refuses the slower one in spite of IF NOT EXISTS. It reads again.
        guard case .database(let code, _) = error, ["23505", "42P07", "42710", "XX000"].contains(code), attempt < 10 else { throw error }
      }
    }
  }
}
