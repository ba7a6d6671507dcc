internal import Foundation
internal import Synchronization

/// The places of the program from which calls were failed: noted where `LARDER_FAULT_TRACES` names a directory, for `Scripts/Torture/fault-sites.sh`.
package enum CallTrace {
  private static let directory = ProcessInfo.processInfo.environment["LARDER_FAULT_TRACES"]
  /// The number of faults of each call and its callers, as offsets in the program's file.
  private static let counts = Mutex<[String: Int]>([:])

  private typealias Backtrace = @convention(c) (UnsafeMutablePointer<UnsafeMutableRawPointer?>, Int32) -> Int32
  private static let backtrace: Backtrace? = dlsym(nil, "backtrace").map { unsafeBitCast($0, to: Backtrace.self) }

  /// The addresses at which the program is in memory.
  private static let image: Range<UInt> = {
    let program = ProcessInfo.processInfo.arguments.first ?? ""
    let maps = FileManager.default.contents(atPath: "/proc/self/maps") ?? Data()
    let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? program
    let ranges = String(decoding: maps, as: UTF8.self).split(separator: "\n").filter { $0.hasSuffix(path) }.map { line in
      line.prefix { $0 != " " }.split(separator: "-").compactMap { UInt($0, radix: 16) }
    }
    return (ranges.first?.first ?? 0)..<(ranges.last?.last ?? 0)
  }()

  /// Notes who has made a call that fails.
  static func note(_ call: SeamCall) {
    guard directory != nil, let backtrace else { return }
    let depth = 24
    let frames = [UnsafeMutableRawPointer?](unsafeUninitializedCapacity: depth) { buffer, count in
      count = buffer.baseAddress.map { Int(backtrace($0, Int32(depth))) } ?? 0
    }
    let offsets = frames.compactMap { frame -> String? in
      let address = UInt(bitPattern: frame)
      return image.contains(address) ? String(address - image.lowerBound, radix: 16) : nil
    }
    let line = "\(call) " + offsets.joined(separator: " ")
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
