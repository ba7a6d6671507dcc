internal import Foundation
internal import Logging

/// Limit on the files, and so on the connections, that the process may have open.
enum OpenFiles {
  /// Number of open files that are not connections: databases, logs, listening sockets.
  private static let others = 64

  /// Raises the limit of open files as far as the process may, and returns how many of the wanted connections fit below it.
  ///
  /// Beyond the limit, connections are not refused one by one: the process can accept none and open no file any more.
  static func connections(_ wanted: Int, _ logger: Logger) -> Int {
    var limit = rlimit()
    // A limit that cannot be read is no reason to reduce the connections.
    guard getrlimit(resource, &limit) == 0 else { return wanted }
    let most = highest(limit, ceiling: ceiling)
    if limit.rlim_cur < most {
      var raised = rlimit(rlim_cur: most, rlim_max: limit.rlim_max)
      // A failure leaves the old limit, with which the count below goes on.
      if setrlimit(resource, &raised) == 0 { limit = raised }
    }
    // RLIM_INFINITY is larger than any `Int`.
    let fitting = max(Int(clamping: limit.rlim_cur) - others, 1)
    if fitting < wanted {
      logger.warning(
        "fewer connections than wanted: raise the limit of open files", metadata: ["connections": "\(fitting)", "wanted": "\(wanted)"])
    }
    return min(fitting, wanted)
  }

  /// Returns the highest limit that the process may set by itself.
  ///
  /// - Parameters:
  ///   - limit: The limit now.
  ///   - ceiling: The maximum that the system accepts in spite of a higher hard limit, or `nil` for none.
  static func highest(_ limit: rlimit, ceiling: rlim_t?) -> rlim_t {
    max(limit.rlim_cur, min(limit.rlim_max, ceiling ?? limit.rlim_max))
  }

  #if canImport(Darwin)
    /// Maximum for `setrlimit` of macOS, which fails above `OPEN_MAX`, though the hard limit may be `RLIM_INFINITY`.
    private static let ceiling: rlim_t? = rlim_t(OPEN_MAX)
  #else
    private static let ceiling: rlim_t? = nil
  #endif

  #if canImport(Glibc)
    // Glibc imports the constant as a value of an enumeration.
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
    private static let resource = RLIMIT_NOFILE
  #endif
}
