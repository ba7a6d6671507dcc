/// Exit codes of the tool.
///
/// The argument parser adds 64 for wrong arguments.
package enum ExitStatus: Int32, Comparable, Sendable {
  /// The answer is yes, or the work is done.
  case success = 0
  /// The answer is no: a store is damaged, two stores differ, or a record was not found.
  case negative = 1
  /// The store cannot be read, or the request was refused.
  case refused = 2
  /// The command failed after it had written. A part of its work, or only its output, is missing.
  case incomplete = 3

  /// Compares by severity, so that `max` of several statuses is the worst one.
  package static func < (left: ExitStatus, right: ExitStatus) -> Bool { left.rawValue < right.rawValue }
}
