internal import Foundation

/// The processes that hold a lock on a store's files.
package struct LockHolders: Sendable {
  /// Their numbers, in order; `nil` where the system does not tell.
  package let processes: [Int32]?
  /// The process that the lock file names, whether or not it still runs.
  package let named: Int32?

  /// Looks at the system's list of locks, and takes none.
  package init(_ family: StoreFamily) {
    let lock = family.members.first { $0.role == "lock" }
    named = lock.flatMap { StoreRecognition.isPlainFile($0.path) ? Self.text($0.path) : nil }.flatMap {
      $0.split(whereSeparator: \.isWhitespace).first
    }.flatMap { Int32($0) }
    let files = Set(family.members.map(\.identity))
    processes = Self.text("/proc/locks").map { list in
      Set(list.split(separator: "\n").compactMap { Self.holder($0, of: files) }).sorted()
    }
  }

  /// Returns the process in a line of the list whose lock is on one of the files, such as
  /// `2: FLOCK  ADVISORY  WRITE 15202 fe:00:16220228 0 EOF`.
  static func holder(_ line: Substring, of files: Set<FileNumber>) -> Int32? {
    let words = line.split(separator: " ")
    // A process that waits for a lock has an arrow.
    guard words.count >= 6, words[1] != "->", let process = Int32(words[4]) else { return nil }
    let numbers = words[5].split(separator: ":")
    guard numbers.count == 3, let major = UInt64(numbers[0], radix: 16), let minor = UInt64(numbers[1], radix: 16),
      let inode = UInt64(numbers[2])
    else { return nil }
    return files.contains(FileNumber(device: deviceNumber(major, minor), inode: inode)) ? process : nil
  }

  /// Returns the number of a device as `stat` gives it.
  private static func deviceNumber(_ major: UInt64, _ minor: UInt64) -> UInt64 {
    (minor & 0xFF) | (major & 0xFFF) << 8 | (minor & ~0xFF) << 12 | (major & ~0xFFF) << 32
  }

  private static func text(_ path: String) -> String? {
    // Absence and refusal both mean that it is not known.
    do { return String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self) } catch { return nil }
  }

  /// The holders in words.
  package var text: String {
    switch (processes, named) {
    case (let processes?, _) where processes.isEmpty: "nobody"
    case (let processes?, _):
      "held by process \(processes.map { $0 > 0 ? String($0) : "of another container" }.joined(separator: ", "))"
    case (nil, let named?): "a lock file names process \(named); this system does not tell whether it still holds the lock"
    case (nil, nil): "nobody"
    }
  }
}
