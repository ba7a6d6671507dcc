// POSIX/ calls the operating system and turns `errno` into typed errors.
// Invariant: a failed sync is never repeated: the kernel may have dropped the unsynced pages, and a second sync would then succeed.
// Called by FileSystem.

internal import CLarderFiles
internal import Foundation

/// The operating system's file system, with writes that are on the medium once they are synced.
///
/// Use it unless a test needs a simulated one. Files are 0600 and directories 0700 regardless of the umask. A file's path must not end in a
/// symbolic link: `.unsupported`. The directories on the way to it may be links, because data directories and `/tmp` often are. `rename` is
/// the system's atomic call, and throws where that fails. On Darwin every sync is `F_FULLFSYNC`, or `fsync` on file systems without it.
public struct POSIXFileSystem: FileSystem {
  /// Creates the file system, which holds no state.
  public init() {}

  /// Opens an existing file, or returns `nil` if there is none.
  ///
  /// - Throws: `.unsupported` for a symbolic link or anything else that is not a plain file, otherwise as ``FileSystem`` says.
  public func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    guard let status = try status(of: path) else { return nil }
    if status.kind != .file { throw .notAPlainFile(status.kind, path) }
    // O_NONBLOCK has no effect on plain files. Without it a named pipe that has taken the path meanwhile would block for ever.
    let flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    guard let descriptor = try Self.openExisting(path, flags) else { return nil }
    let file = POSIXFile(path: path, descriptor: descriptor, isNew: false)
    // Another file may have taken the path since `lstat`. `fstat` sees the file that is open.
    let kind = try file.status().kind
    if kind != .file { throw .notAPlainFile(kind, path) }
    return file
  }

  /// Returns the `lstat` status of a path, or `nil` if nothing is there.
  ///
  /// On Linux without the file's times: reading them makes the next sync of a file longer.
  public func status(of path: String) throws(RepositoryError) -> FileStatus? {
    try Self.check(path)
    var status = stat()
    return try SystemCall.perform("lstat", path, accepting: ENOENT) { larder_lstat_without_times(path, &status) } ? FileStatus(status) : nil
  }

  /// Creates a file that must not exist yet, with mode 0600.
  public func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    let descriptor = try Self.openDescriptor(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode: 0o600)
    let file = POSIXFile(path: path, descriptor: descriptor, isNew: true)
    // The umask may have taken bits of the owner's away.
    try file.setMode(0o600)
    return file
  }

  /// Renames a file within its directory, atomically or not at all.
  ///
  /// - Throws: `.unsupported` when the directories differ: one directory sync could not make that durable.
  public func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    try Self.check(path)
    try Self.check(newPath)
    guard PathText.parent(of: path) == PathText.parent(of: newPath) else {
      throw RepositoryError(.unsupported, "a file is renamed within its directory only", file: path)
    }
    try SystemCall.perform("rename", newPath) { renameEntry(path, newPath) }
  }

  /// Removes a file, if there is one.
  public func remove(_ path: String) throws(RepositoryError) {
    try Self.check(path)
    try SystemCall.perform("unlink", path, accepting: ENOENT) { unlink(path) }
  }

  /// Creates a directory and its missing parents with mode 0700, and syncs each into its parent before the next is made.
  public func createDirectory(_ path: String) throws(RepositoryError) {
    try Self.check(path)
    let parent = PathText.parent(of: path)
    switch try makeDirectory(path) {
    case .done(let isNew):
      // Each directory is synced before the next is made, so only the last existing one can have a maker that was killed before its sync.
      try syncEntry(of: isNew == 1 ? parent : path)
    // The root has no parent that could be made.
    case .failed(ENOENT) where parent != path:
      try createDirectory(parent)
      if case .failed(let number) = try makeDirectory(path) { throw .system("mkdir", number, file: path) }
    case .failed(let number):
      throw .system("mkdir", number, file: path)
    }
  }

  /// Makes the entries of a directory durable.
  public func syncDirectory(_ path: String) throws(RepositoryError) {
    let descriptor = try Self.openDescriptor(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    let (call, outcome) = DurableSync.directory(descriptor)
    // Closed before the error is thrown: the descriptor would leak.
    let closing = closeDescriptor(descriptor)
    if case .failed(let number) = outcome { throw .system(call, number, file: path) }
    if let closing, closing != EINTR { throw .system("close", closing, file: path) }
  }

  /// Returns the names in a directory without `.` and `..`, or `nil` if there is no such directory.
  public func entries(of directory: String) throws(RepositoryError) -> [String]? {
    guard let descriptor = try Self.openExisting(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) else { return nil }
    guard let stream = fdopendir(descriptor) else {
      // `fdopendir` owns the descriptor only if it succeeds.
      let number = errno
      _ = closeDescriptor(descriptor)
      throw .system("fdopendir", number, file: directory)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      // `readdir` returns nil at the end and after a failure. Only `errno` distinguishes them.
      errno = 0
      guard let entry = readdir(stream) else {
        let number = errno
        if number != 0 { throw .system("readdir", number, file: directory) }
        return names
      }
      let name = withUnsafePointer(to: &entry.pointee.d_name) { field in
        String(cString: UnsafeRawPointer(field).assumingMemoryBound(to: CChar.self))
      }
      if name != "." && name != ".." { names.append(name) }
    }
  }

  /// Takes the lock with `flock`, and writes this process's id into the file for the error messages of other processes.
  public func lock(_ path: String) throws(RepositoryError) -> any HeldLock {
    try Self.check(path)
    return try POSIXLock.acquire(path)
  }

  /// Takes a share in the lock with `flock`.
  ///
  /// The lock file names the task of the process that is alone with it.
  public func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock {
    try Self.check(path)
    return try POSIXSharedLock.acquire(path, waiting: timeout)
  }

  /// Creates one directory durably, and returns 1, or 0 if it existed.
  private func makeDirectory(_ path: String) throws(RepositoryError) -> CallOutcome {
    switch SystemCall.uninterrupted({ Int(mkdir(path, 0o700)) }) {
    case .done:
      // The umask may have taken bits of the owner's away.
      try SystemCall.perform("chmod", path) { chmod(path, 0o700) }
      try syncDirectory(path)
      try syncDirectory(PathText.parent(of: path))
      return .done(1)
    case .failed(EEXIST):
      // `stat` follows links: directories on the way may be links.
      var status = stat()
      try SystemCall.perform("stat", path) { stat(path, &status) }
      return status.st_mode & S_IFMT == S_IFDIR ? .done(0) : .failed(ENOTDIR)
    case .failed(let number):
      return .failed(number)
    }
  }

  /// Syncs the entry of an existing directory into its parent, if this process may open the parent.
  private func syncEntry(of path: String) throws(RepositoryError) {
    do {
      try syncDirectory(PathText.parent(of: path))
    } catch {
      // This user cannot have made a directory in a parent that it may not open, such as a container's or the system's.
      if error.code != .protectedDataUnavailable { throw error }
    }
  }

  private static func openDescriptor(_ path: String, _ flags: Int32, mode: mode_t = 0) throws(RepositoryError) -> Int32 {
    guard let descriptor = try openExisting(path, flags, mode: mode) else { throw .system("open", ENOENT, file: path) }
    return descriptor
  }

  /// Opens the file at a path, or returns `nil` if nothing is there.
  private static func openExisting(_ path: String, _ flags: Int32, mode: mode_t = 0) throws(RepositoryError) -> Int32? {
    try check(path)
    var descriptor: Int32 = -1
    let isOpen = try SystemCall.perform("open", path, accepting: ENOENT) {
      descriptor = openFile(path, flags, mode)
      return descriptor
    }
    return isOpen ? descriptor : nil
  }

  /// Refuses a relative path, which changes with the working directory, and one with a NUL, at which the system would cut it.
  private static func check(_ path: String) throws(RepositoryError) {
    if !path.hasPrefix("/") || path.utf8.contains(0) { throw .system("open", EINVAL, file: path) }
  }
}

/// Operations on the text of paths.
enum PathText {
  /// Returns the directory that holds a file, computed from the text alone.
  ///
  /// The root's is "/".
  static func parent(of path: String) -> String {
    let parts = path.utf8.split(separator: UInt8(ascii: "/"))
    return "/" + parts.dropLast().map { String(Substring($0)) }.joined(separator: "/")
  }

  /// Returns the name of a file in its directory, byte for byte.
  ///
  /// `URL.lastPathComponent` leaves out a byte order mark.
  static func name(of path: String) -> String { path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? "/" }
}

/// File names that fit every file system.
enum FileName {
  /// Largest number of bytes in a file name, which is NAME_MAX of every common file system.
  static let limit = 255

  /// Returns a name, shortened to its beginning and its checksum if fewer than `count` bytes would be left for a suffix.
  static func shortened(_ name: String, leaving count: Int) -> String {
    guard name.utf8.count + count > limit else { return name }
    // The checksum keeps two long names with the same beginning apart.
    let checksum = "-" + Hexadecimal.string(Array(name.utf8).withUnsafeBytes { CRC32C.checksum($0) })
    // Whole characters, so that the name stays valid UTF-8.
    var stem = name[...]
    while stem.utf8.count + checksum.utf8.count + count > limit, !stem.isEmpty { stem.removeLast() }
    return stem + checksum
  }
}

// Methods named `open` and `rename` hide the C functions of those names.
private func openFile(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }
private func renameEntry(_ path: String, _ newPath: String) -> Int32 { rename(path, newPath) }
