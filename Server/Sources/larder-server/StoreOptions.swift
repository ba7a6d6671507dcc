internal import ArgumentParser
internal import Foundation
internal import LarderServer
internal import Logging

/// Options that name the store.
struct StoreOptions: ParsableArguments {
  /// Location of the store.
  enum Place: Sendable {
    /// A SQLite file.
    case sqlite(String)
    /// A PostgreSQL database, as a URI or a connection string of libpq.
    case postgreSQL(String)
  }

  /// Environment variable that names the store without the option, so that a password is in no list of processes.
  static let variable = "LARDER_SERVER_STORE"

  @Option(help: ArgumentHelp("The database: sqlite:FILE or postgres:URI; \(variable) without it.", valueName: "URI")) var store: String?
  @Flag(help: "With PostgreSQL: there is a pooler in transaction mode in between, such as pgbouncer.") var pooler = false
  @Flag(help: "With PostgreSQL: a promoted standby lacks nothing, since one was synchronous; the history stays the same.")
  var trustFailover = false

  /// Returns the location of the store.
  ///
  /// - Throws: ``ServerError``, without the text after the colon, which may have a password.
  func place() throws(ServerError) -> Place {
    let text = store ?? ProcessInfo.processInfo.environment[Self.variable] ?? ""
    if text.hasPrefix("sqlite:"), text != "sqlite:" { return .sqlite(String(text.dropFirst("sqlite:".count))) }
    if let address = Self.address(text) { return .postgreSQL(address) }
    let scheme = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    throw ServerError(
      expected: "sqlite:FILE or postgres:URI for --store or \(Self.variable)",
      found: scheme.count == 2 ? "'\(scheme[0]):'" : text.isEmpty ? "nothing" : "a text without ':'",
      advice: "write --store sqlite:larder.sqlite")
  }

  /// Returns the address for libpq: without `postgres:` before a connection string, and as it is if that is the scheme of a URI.
  static func address(_ text: String) -> String? {
    for scheme in ["postgres:", "postgresql:"] where text.hasPrefix(scheme) {
      let rest = String(text.dropFirst(scheme.count))
      return rest.hasPrefix("//") ? text : rest
    }
    return nil
  }

  /// Opens the store, runs work on it, and closes it.
  ///
  /// Prints a failure.
  ///
  /// - Parameter pool: The connections of a server. Without them, the store gets those of a command that may take long.
  func withStore(
    creates: Bool = false, pool: PoolOptions? = nil, _ logger: Logger = ServerLog.quiet, _ work: (SQLSyncStore) async throws -> Void
  ) async throws {
    do {
      let store = try await open(creates: creates, pool: pool, logger)
      let result: Result<Void, any Error>
      do { result = .success(try await work(store)) } catch { result = .failure(error) }
      // After a failure, too, so that the store of a file has no log beside it.
      await store.close()
      try result.get()
      // An exit code comes from a command that has printed its result.
    } catch let code as ExitCode { throw code } catch { throw fail(error) }
  }

  private func open(creates: Bool, pool: PoolOptions?, _ logger: Logger) async throws -> SQLSyncStore {
    switch try place() {
    case .sqlite(let path): return try await SQLSyncStore.open(sqlite: path, creates: creates, logger: logger)
    case .postgreSQL(let address):
      var options = PostgreSQLOptions()
      (options.usesPooler, options.trustsFailover) = (pooler, trustFailover)
      if let pool {
        pool.set(&options)
      } else {
        // A purge or a check may take long. A command serves no streams, so it does not listen for commits.
        (options.writers, options.readers, options.statementSeconds, options.listening) = (1, 1, 3_600, .off)
      }
      return try await SQLSyncStore.open(postgreSQL: address, options: options, logger: logger)
    }
  }
}

/// Loggers of the command.
enum ServerLog {
  /// Logger of errors alone, for commands that print their result themselves.
  static var quiet: Logger { logger(.error) }

  /// Returns a logger that writes to standard error.
  static func logger(_ level: Logger.Level) -> Logger {
    var logger = Logger(label: "larder-server") { StreamLogHandler.standardError(label: $0) }
    logger.logLevel = level
    return logger
  }
}
