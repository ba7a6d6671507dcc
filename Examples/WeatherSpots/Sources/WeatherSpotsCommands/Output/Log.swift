import Foundation
import Logging
import Synchronization

/// The log of `--verbose`: on standard error, and without it nowhere.
///
/// What is logged are kinds, counts, states and durations: never a name, a coordinate, a URL or a key.
enum Log {
  private static let isWanted = Mutex(false)

  /// Sets the log up; it is on if any part of the command line wants it.
  static func start(verbose: Bool) {
    if verbose { isWanted.withLock { $0 = true } }
    _ = system
  }

  /// Done once in a process, as the package insists; each logger asks when it is made.
  private static let system: Void = LoggingSystem.bootstrap { label in
    guard isWanted.withLock({ $0 }) else { return SwiftLogNoOpLogHandler() }
    var handler = StreamLogHandler.standardError(label: label)
    handler.logLevel = .debug
    return handler
  }
}
