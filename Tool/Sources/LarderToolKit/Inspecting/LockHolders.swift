internal import Foundation

/// Processes that hold a lock on one of a store's files.
package struct LockHolders: Sendable {
  /// Process ids in ascending order.
  ///
  /// `nil` if the system does not list its locks, which only Linux does.
  package let processes: [Int32]?
  /// Process id in the lock file.
  ///
  /// The process may have ended.
  package let named: Int32?

  /// Reads the system's list of locks without taking a lock.
  package init(_ family: StoreFamily) {
    let lock = family.members.first { $0.role == "lock" }
    // Only a plain file is read. Reading a pipe under this name would block until a writer appears.
    named = lock.flatMap { StoreRecognition.isPlainFile($0.path) ? Self.text($0.path) : nil }.flatMap {
      $0.split(whereSeparator: \.isWhitespace).first
    }.flatMap { Int32($0) }
    // The list of locks has no paths, only the device and inode of each file.
    let files = Set(family.members.map(\.identity))
    processes = Self.text("/proc/locks").map { list in
      Set(list.split(separator: "\n").compactMap { Self.holder($0, of: files) }).sorted()
    }
  }

  /// Returns the process id in a line of `/proc/locks` if the lock is on one of the files.
  ///
  /// A line looks like `2: FLOCK  ADVISORY  WRITE 15202 fe:00:16220228 0 EOF`.
  static func holder(_ line: Substring, of files: Set<FileNumber>) -> Int32? {
    let words = line.split(separator: " ")
    // A line with an arrow is of a process that waits for a lock and does not hold it.
    guard words.count >= 6, words[1] != "->", let process = Int32(words[4]) else { return nil }
    let numbers = words[5].split(separator: ":")
    guard numbers.count == 3, let major = UInt64(numbers[0], radix: 16), let minor = UInt64(numbers[1], radix: 16),
      let inode = UInt64(numbers[2])
    else { return nil }
    return files.contains(FileNumber(device: deviceNumber(major, minor), inode: inode)) ? process : nil
  }

  /// Packs the device numbers of `/proc/locks` as `st_dev` of `stat` has them (glibc's `makedev`).
  private static func deviceNumber(_ major: UInt64, _ minor: UInt64) -> UInt64 {
    (minor & 0xFF) | (major & 0xFFF) << 8 | (minor & ~0xFF) << 12 | (major & ~0xFFF) << 32
  }

  private static func text(_ path: String) -> String? {
    // A missing and an unreadable file both mean that the holders are unknown, which is no failure of `inspect`.
    do { return String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self) } catch { return nil }
  }

  /// Description of the holders, for the output of `inspect`.
  package var text: String {
    switch (processes, named) {
    case (let processes?, _) where processes.isEmpty: "nobody"
    case (let processes?, _):
      "held by process \(processes.map { $0 > 0 ? String($0) : "of another container" }.joined(separator: ", "))"
    // A lock file stays after a crash. Without a list of locks it does not prove that the process holds the lock.
    case (nil, let named?): "a lock file names process \(named); this system does not tell whether it still holds the lock"
    case (nil, nil): "nobody"
    }
  }
}
