import Foundation

/// Output file that is replaced atomically, such as that of `--output`.
///
/// The bytes are written to a temporary file beside it, which is then renamed, so the file has all of the new bytes or all of the old ones.
/// A symbolic link stays, and its target is replaced. A device or a pipe gets the bytes directly.
struct OutputFile {
  private let name: String
  /// Path after all symbolic links.
  private let path: String
  private let isStream: Bool

  /// Name suffixes of the files that SQLite and Larder keep beside a store.
  private static let companions = ["-journal", "-wal", "-shm", "-lock"]

  /// Checks an output path before anything is fetched or written.
  ///
  /// - Parameter store: The store of the command, if it has one.
  /// - Throws: `Failure` if the path is a file of this store or of another one, or a block device.
  init(_ name: String, beside store: URL? = nil) throws {
    self.name = name
    let kind = Self.status(of: name).map { $0.st_mode & S_IFMT }
    guard kind != S_IFBLK else { throw Failure(.noOutput, "\(name) is a disk, which is not written; name a file") }
    // If standard output is redirected to a file, /dev/stdout leads to that file. The shell has it open, so it is appended to and not
    // replaced.
    let isDescriptor = ["/dev/std", "/dev/fd/", "/proc/"].contains(where: name.hasPrefix)
    isStream = ![nil, S_IFREG, S_IFDIR].contains(kind) || kind == S_IFREG && isDescriptor
    // A stream may have no path: /dev/stdout may lead to pipe:[1234], which is no file name.
    path = isStream ? name : try Self.followed(name)
    let own = store.map { store in ([""] + Self.companions).map { store.path + $0 } } ?? []
    if own.contains(where: { Self.isSame(path, $0) }) || Self.isOfStore(path) {
      throw Failure(.noOutput, "\(name) is of a store, which would be lost; name another file")
    }
  }

  /// Writes the bytes, either directly to a stream or by replacing the file.
  ///
  /// - Throws: `Failure`, after which a regular file is unchanged.
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
    // The file's own name is left out: with a suffix it could exceed the length limit of names.
    let partial = URL(filePath: path).deletingLastPathComponent().appending(path: ".weather-spots-\(random).partial").path
    // O_EXCL: an existing file of this name belongs to somebody else. It is neither overwritten nor removed below.
    let file = try Self.opened(partial, O_WRONLY | O_CREAT | O_EXCL, permissions)
    do {
      try Self.write(data, to: file, syncs: true)
      // After the sync: a power cut must not leave the new name with missing bytes.
      guard rename(partial, path) == 0 else { throw POSIXError.last }
    } catch {
      unlink(partial)
      throw error
    }
  }

  private static func opened(_ path: String, _ flags: Int32, _ permissions: mode_t = 0) throws -> FileHandle {
    // A child process must not inherit the descriptor.
    let descriptor = open(path, flags | O_CLOEXEC, permissions)
    guard descriptor >= 0 else { throw POSIXError.last }
    return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  private static func write(_ data: Data, to file: FileHandle, syncs: Bool) throws {
    try file.write(contentsOf: data)
    if syncs { try file.synchronize() }
    // Closed explicitly, since some file systems report a failed write only then.
    try file.close()
  }

  /// Returns the target of a path after all symbolic links, whether or not it exists.
  private static func followed(_ name: String) throws -> String {
    var file = URL(filePath: name)
    // Linux also follows at most 40 links.
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

  /// Returns true if two paths lead to one file, or would after the file is created.
  private static func isSame(_ one: String, _ other: String) -> Bool {
    if let one = status(of: one), let other = status(of: other) { return one.st_dev == other.st_dev && one.st_ino == other.st_ino }
    let (one, other) = (URL(filePath: one), URL(filePath: other))
    // A file that does not exist yet has no inode, so its name and the inode of its directory are compared.
    guard one.lastPathComponent == other.lastPathComponent, let folder = status(of: one.deletingLastPathComponent().path),
      let otherFolder = status(of: other.deletingLastPathComponent().path)
    else { return false }
    return folder.st_dev == otherFolder.st_dev && folder.st_ino == otherFolder.st_ino
  }

  /// Returns true if a file is a Larder store or has the name of a file beside one.
  private static func isOfStore(_ path: String) -> Bool {
    isStore(path) || companions.contains { path.hasSuffix($0) && isStore(String(path.dropLast($0.count))) }
  }

  /// Returns true if a file begins with the header of a Larder store.
  private static func isStore(_ path: String) -> Bool {
    // Opening a pipe would block until a writer comes.
    guard status(of: path).map({ $0.st_mode & S_IFMT == S_IFREG }) == true else { return false }
    let beginning: Data
    do {
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      beginning = try file.read(upToCount: 72) ?? Data()
      try file.close()
    } catch { return false }
    if beginning.starts(with: Data(#"{"format":"larder""#.utf8)) { return true }
    // Bytes 68 to 71 of a SQLite database are its application id.
    return beginning.starts(with: Data("SQLite format 3\0".utf8)) && beginning.dropFirst(68).elementsEqual(Data("LRDR".utf8))
  }
}
