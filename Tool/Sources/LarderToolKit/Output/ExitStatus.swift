/// The exit codes of the tool; 64, for wrong arguments, is the parser's.
package enum ExitStatus: Int32, Comparable, Sendable {
  /// The answer is yes, or the work is done.
  case success = 0
  /// The answer is no: damaged, different, not found.
  case negative = 1
  /// The store cannot be read, or the request was refused.
  case refused = 2
  /// The command failed after it had written: a part of its work, or its answer alone, is missing.
  case incomplete = 3

  /// Whether the left one is the better news.
  package static func < (left: ExitStatus, right: ExitStatus) -> Bool { left.rawValue < right.rawValue }
}
