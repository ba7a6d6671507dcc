internal import Foundation

/// An event at a call of the seam that is a part of a test's program: a failure, or a change of the files by somebody else.
struct ScriptedCall: Sendable {
  var call: SeamCall
  /// The ending of the path; where it has "#", each number in the path counts as one.
  var ending: String
  /// The number of such calls that are let through before.
  var remaining = 0
  var fault: Fault?
  var disturbance: (@Sendable () -> Void)?

  /// Whether a call is the one that is meant.
  func isMeant(_ other: SeamCall, _ path: String) -> Bool {
    guard call == other else { return false }
    return path.hasSuffix(ending) || ending.contains("#") && Self.withoutNumbers(path).hasSuffix(ending)
  }

  private static func withoutNumbers(_ path: String) -> String {
    path.split(separator: "-", omittingEmptySubsequences: false).map { !$0.isEmpty && $0.allSatisfy(\.isNumber) ? "#" : $0 }
      .joined(separator: "-")
  }
}
