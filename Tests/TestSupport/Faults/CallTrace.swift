internal import Foundation
internal import Synchronization

/// The places of the program from which calls were failed: noted where `LARDER_FAULT_TRACES` names a directory, for `Scripts/Torture/fault-sites.sh`.
package enum CallTrace {
  /// The place of a failing call in its fault.
  package enum Kind: String {
    /// It fails alone.
    case once
    /// With it begins a state of the disk that goes on.
    case first
    /// It fails because an earlier one has begun such a state.
    case later
  }

  private static let directory = ProcessInfo.processInfo.environment["LARDER_FAULT_TRACES"]
  /// The number of faults of each call, fault and callers.
  private static let counts = Mutex<[String: Int]>([:])

  /// Notes who has made a call that fails.
  static func note(_ call: SeamCall, _ fault: Fault, _ kind: Kind) {
    guard directory != nil else { return }
    let offsets = Callers.offsets().map { String($0, radix: 16) }
    let line = "\(call) \(fault.name) \(kind) " + offsets.joined(separator: " ")
    counts.withLock { $0[line, default: 0] += 1 }
  }

  /// Writes what was noted to a file of its own; does nothing where nobody has asked.
  package static func save(_ name: String) throws {
    guard let directory else { return }
    // Each count is in one file only.
    let taken = counts.withLock { counts -> [String: Int] in
      let taken = counts
      counts = [:]
      return taken
    }
    let text = taken.map { "\($0.value) \($0.key)\n" }.joined()
    try Data(text.utf8).write(to: URL(fileURLWithPath: directory).appendingPathComponent(name + ".trace"))
  }
}
