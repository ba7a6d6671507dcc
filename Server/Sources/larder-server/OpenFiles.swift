internal import Foundation
internal import Logging

/// The number of files, and so of connections, that the process may have open.
enum OpenFiles {
  /// The files that are not connections: databases, logs, what listens.
  private static let others = 64

  /// Raises the limit as far as the process may by itself, and returns how many of the connections that are wanted fit below it.
  ///
  /// Connections beyond the limit would not be refused one by one: nothing could be accepted, nor a file opened, any more.
  static func connections(_ wanted: Int, _ logger: Logger) -> Int {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0 else { return wanted }
    let most = highest(limit, ceiling: ceiling)
    if limit.rlim_cur < most {
      var raised = rlimit(rlim_cur: most, rlim_max: limit.rlim_max)
      if setrlimit(resource, &raised) == 0 { limit = raised }
    }
    // Without a limit, the number is larger than any integer.
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
  ///   - ceiling: The most that the system accepts, whatever the hard limit is; `nil` for none.
  static func highest(_ limit: rlimit, ceiling: rlim_t?) -> rlim_t {
    max(limit.rlim_cur, min(limit.rlim_max, ceiling ?? limit.rlim_max))
  }

  #if canImport(Darwin)
    /// `setrlimit` of macOS fails above `OPEN_MAX`, though the hard limit may be `RLIM_INFINITY`.
    private static let ceiling: rlim_t? = rlim_t(OPEN_MAX)
  #else
    private static let ceiling: rlim_t? = nil
  #endif

  #if canImport(Glibc)
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
    private static let resource = RLIMIT_NOFILE
  #endif
}
