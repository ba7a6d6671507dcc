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
    if limit.rlim_cur < limit.rlim_max {
      var raised = rlimit(rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max)
      if setrlimit(resource, &raised) == 0 { limit = raised }
    }
    // Without a limit, the number is larger than any integer.
    let most = max(Int(clamping: limit.rlim_cur) - others, 1)
    if most < wanted {
      logger.warning(
        "fewer connections than wanted: raise the limit of open files", metadata: ["connections": "\(most)", "wanted": "\(wanted)"])
    }
    return min(most, wanted)
  }

  #if canImport(Glibc)
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
    private static let resource = RLIMIT_NOFILE
  #endif
}
