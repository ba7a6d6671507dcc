import Foundation

/// A file that the program writes for its user, such as that of the option `--output`.
///
/// The file has all of the new bytes or all of the old ones: they are written to another file beside it, which is then renamed. A link
/// stays, and the file that it leads to is written. A device or a pipe gets the bytes, as from a shell.
struct OutputFile {
  private let name: String
  /// The file that the name leads to.
  private let path: String
  private let isStream: Bool

  /// The endings of the files beside a store.
  private static let companions = ["-journal", "-wal", "-shm", "-lock"]

  /// Looks at a file before anything is fetched or written.
  ///
  /// - Parameter store: The store of the command, if it has one.
  /// - Throws: `Failure` for the files of a store, this one or another.
  init(_ name: String, beside store: URL? = nil) throws {
    self.name = name
    let kind = Self.status(of: name).map { $0.st_mode & S_IFMT }
    guard kind != S_IFBLK else { throw Failure(.noOutput, "\(name) is a disk, which is not written; name a file") }
    // Where standard output is a file, /dev/stdout leads to it: it gets the bytes, and is not replaced.
    let isDescriptor = ["/dev/std", "/dev/fd/", "/proc/"].contains(where: name.hasPrefix)
    isStream = ![nil, S_IFREG, S_IFDIR].contains(kind) || kind == S_IFREG && isDescriptor
    // A stream may have no path: /dev/stdout leads to a link to pipe:[1234].
    path = isStream ? name : try Self.followed(name)
    let own = store.map { store in ([""] + Self.companions).map { store.path + $0 } } ?? []
    if own.contains(where: { Self.isSame(path, $0) }) || Self.isOfStore(path) {
      throw Failure(.noOutput, "\(name) is of a store, which would be lost; name another file")
    }
  }

  /// Writes the file.
  ///
  /// - Throws: `Failure`, after which a file is as it was.
  func write(_ data: Data, permissions: mode_t = 0o666) throws {
    do {
      if isStream {
        try Self.write(data, to: try Self.opened(path, O_WRONLY | O_APPEND), syncs: false)
      } else {
        try replace(data, permissions)
      }
    } catch { throw Failure(.noOutput, "\(name) cannot be written: \(error.reason)") }
  }

  private func replace(_ data: Data, _ permissions: mode_t) throws {
    let random = String(format: "%08x", UInt32.random(in: 0 ... .max))
    // Without the file's own name, which may be as long as a name can be.
    let partial = URL(filePath: path).deletingLastPathComponent().appending(path: ".weather-spots-\(random).partial").path
    // A file that has this name already is not opened, and not removed below.
    let file = try Self.opened(partial, O_WRONLY | O_CREAT | O_EXCL, permissions)
    do {
      try Self.write(data, to: file, syncs: true)
      guard rename(partial, path) == 0 else { throw POSIXError.last }
    } catch {
      unlink(partial)
      throw error
    }
  }

  private static func opened(_ path: String, _ flags: Int32, _ permissions: mode_t = 0) throws -> FileHandle {
    let descriptor = open(path, flags | O_CLOEXEC, permissions)
    guard descriptor >= 0 else { throw POSIXError.last }
    return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  private static func write(_ data: Data, to file: FileHandle, syncs: Bool) throws {
    try file.write(contentsOf: data)
    if syncs { try file.synchronize() }
    try file.close()
  }

  /// Returns the file that a name leads to, which need not be there.
  private static func followed(_ name: String) throws -> String {
    var file = URL(filePath: name)
    // As many links as Linux follows.
    for _ in 0..<40 {
      let link: String
      do { link = try FileManager.default.destinationOfSymbolicLink(atPath: file.path) } catch { return file.path }
      file = URL(filePath: link, relativeTo: file.deletingLastPathComponent()).absoluteURL
    }
    throw Failure(.noOutput, "\(name) cannot be written: its links lead in a circle")
  }

  private static func status(of path: String) -> stat? {
    var status = stat()
    return stat(path, &status) == 0 ? status : nil
  }

  /// Whether two paths are one file, or will be when it is made.
  private static func isSame(_ one: String, _ other: String) -> Bool {
    if let one = status(of: one), let other = status(of: other) { return one.st_dev == other.st_dev && one.st_ino == other.st_ino }
    let (one, other) = (URL(filePath: one), URL(filePath: other))
    guard one.lastPathComponent == other.lastPathComponent, let folder = status(of: one.deletingLastPathComponent().path),
      let otherFolder = status(of: other.deletingLastPathComponent().path)
    else { return false }
    return folder.st_dev == otherFolder.st_dev && folder.st_ino == otherFolder.st_ino
  }

  /// Whether a file is a store of Larder, or has the name of a file beside one.
  private static func isOfStore(_ path: String) -> Bool {
    isStore(path) || companions.contains { path.hasSuffix($0) && isStore(String(path.dropLast($0.count))) }
  }

  /// Whether a file begins as a store of Larder does.
  private static func isStore(_ path: String) -> Bool {
    guard status(of: path).map({ $0.st_mode & S_IFMT == S_IFREG }) == true else { return false }
    let beginning: Data
    do {
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      beginning = try file.read(upToCount: 72) ?? Data()
      try file.close()
    } catch { return false }
    if beginning.starts(with: Data(#"{"format":"larder""#.utf8)) { return true }
    // The application id of a SQLite database.
    return beginning.starts(with: Data("SQLite format 3\0".utf8)) && beginning.dropFirst(68).elementsEqual(Data("LRDR".utf8))
  }
}
