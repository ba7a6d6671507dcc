internal import ArgumentParser
internal import LarderServer
internal import Logging

/// The place of the store.
struct StoreOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The database: sqlite:FILE.", valueName: "URI")) var store: String

  /// Returns the path of the file.
  ///
  /// - Throws: ``ServerError``.
  func path() throws(ServerError) -> String {
    let path = store.dropFirst("sqlite:".count)
    guard store.hasPrefix("sqlite:"), !path.isEmpty else {
      throw ServerError(expected: "sqlite:FILE for --store", found: "'\(store)'", advice: "write --store sqlite:larder.sqlite")
    }
    return String(path)
  }

  /// Runs work on the store, which is closed afterwards; failures are printed.
  func withStore(creates: Bool = false, _ logger: Logger = ServerLog.quiet, _ work: (SQLSyncStore) async throws -> Void) async throws {
    do {
      let store = try await SQLSyncStore.open(sqlite: try path(), creates: creates, logger: logger)
      let result: Result<Void, any Error>
      do { result = .success(try await work(store)) } catch { result = .failure(error) }
      await store.close()
      try result.get()
    } catch let code as ExitCode { throw code } catch { throw fail(error) }
  }
}

/// The logs of the command.
enum ServerLog {
  /// A logger for commands that print their result themselves.
  static var quiet: Logger { logger(.error) }

  /// Returns a logger that writes to stderr.
  static func logger(_ level: Logger.Level) -> Logger {
    var logger = Logger(label: "larder-server") { StreamLogHandler.standardError(label: $0) }
    logger.logLevel = level
    return logger
  }
}
