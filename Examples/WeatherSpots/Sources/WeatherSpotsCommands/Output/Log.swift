import Logging
import Synchronization

/// Log of `--verbose`, written to standard error.
///
/// Entries have kinds, counts, states and durations, and never a name, a coordinate, a URL or a key.
enum Log {
  private static let isWanted = Mutex(false)

  /// Starts the log, which is on if any part of the command line has `--verbose`.
  static func start(verbose: Bool) {
    // Never set back to false: each level of subcommands parses its own options, and only one has the flag.
    if verbose { isWanted.withLock { $0 = true } }
    _ = system
  }

  /// Bootstraps swift-log, which traps if that is done twice in a process.
  private static let system: Void = LoggingSystem.bootstrap { label in
    // Read for each new logger, since a later part of the command line may turn the log on.
    guard isWanted.withLock({ $0 }) else { return SwiftLogNoOpLogHandler() }
    var handler = StreamLogHandler.standardError(label: label)
    handler.logLevel = .debug
    return handler
  }
}
