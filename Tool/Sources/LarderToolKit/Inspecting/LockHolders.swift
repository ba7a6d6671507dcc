internal import Foundation

/// Processes that hold a lock on one of a store's files.
package struct LockHolders: Sendable {
  /// Process ids in ascending order.
  ///
  /// `nil` if the system does not list its locks, which only Linux does.
  package let processes: [Int32]?
  /// Whether a process holds a lock and the system lists no id for it.
  package let hasUnnamed: Bool
  /// Process id in the lock file.
  ///
  /// The process may have ended.
  package let named: Int32?

  /// Reads the system's list of locks without taking a lock.
  package init(_ family: StoreFamily) {
    let lock = family.members.first { $0.role == "lock" }
    // Only a plain file is read. Reading a pipe under this name would block until a writer appears.
    let named = lock.flatMap { StoreRecognition.isPlainFile($0.path) ? Self.text($0.path) : nil }.flatMap {
      $0.split(whereSeparator: \.isWhitespace).first
    }.flatMap { Int32($0) }
    // The list of locks has no paths, only the device and inode of each file.
    let files = Set(family.members.map(\.identity))
    self.init(list: Self.text("/proc/locks"), of: files, named: named)
  }

  /// Parses a list of locks.
  /// - Parameter list: Contents of `/proc/locks`. `nil` if the system has no such file.
  init(list: String?, of files: Set<FileNumber>, named: Int32?) {
    self.named = named
    let holders = list.map { list in Set(list.split(separator: "\n").compactMap { Self.holder($0, of: files) }) }
    processes = holders?.filter { $0 > 0 }.sorted()
    // A SQLite store locks its database with `F_OFD_SETLK`. Such a lock belongs to an open file, and the list has -1 in place of a process.
    // The process also locks the lock file, so -1 counts only if the list has no id. A second process without an id is then not seen.
    // An id of 0 is of a process in another container.
    hasUnnamed = holders?.contains(0) == true || holders == [-1]
  }

  /// Returns the process id in a line of `/proc/locks` if the lock is on one of the files.
  ///
  /// A line looks like `2: FLOCK  ADVISORY  WRITE 15202 fe:00:16220228 0 EOF`. The id is 0 or -1 if the system does not name the process.
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
    case ([], _) where hasUnnamed: "held by a process that this system does not name, such as one of another container"
    case ([], _): "nobody"
    case (let processes?, _):
      "held by process \(processes.map { String($0) }.joined(separator: ", "))\(hasUnnamed ? ", and by one of another container" : "")"
    // A lock file stays after a crash. Without a list of locks it does not prove that the process holds the lock.
    case (nil, let named?): "a lock file names process \(named); this system does not tell whether it still holds the lock"
    case (nil, nil): "nobody"
    }
  }
}
