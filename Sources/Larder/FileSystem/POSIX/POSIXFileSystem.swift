internal import CLarderFiles
internal import Foundation

/// The files of the operating system, written so that what was synced is on the medium.
///
/// Files are 0600 and directories 0700 whatever the umask. A file's path must not end in a symbolic link: `.unsupported`. The directories
/// on the way to it may be links, because data directories and `/tmp` often are. `rename` is the system's atomic one and nothing else:
/// where that fails, it throws. On Darwin every sync is `F_FULLFSYNC`, or `fsync` on file systems without it.
public struct POSIXFileSystem: FileSystem {
  /// Makes the file system; it holds no state.
  public init() {}

  /// Opens an existing file; `nil` when there is none.
  ///
  /// - Throws: `.unsupported` for a symbolic link or anything else that is not a plain file, otherwise as ``FileSystem`` says.
  public func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    guard let status = try status(of: path) else { return nil }
    if status.kind != .file { throw .notAPlainFile(status.kind, path) }
    // O_NONBLOCK has no effect on plain files; if a named pipe has come here meanwhile, it would block for ever without it.
    let flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    guard let descriptor = try Self.openExisting(path, flags) else { return nil }
    let file = POSIXFile(path: path, descriptor: descriptor, isNew: false)
    let kind = try file.status().kind
    if kind != .file { throw .notAPlainFile(kind, path) }
    return file
  }

  /// Returns what stands at a path, by `lstat`; `nil` when nothing does.
  ///
  /// On Linux without the file's times: looking at them makes the next sync of a file longer.
  public func status(of path: String) throws(RepositoryError) -> FileStatus? {
    try Self.check(path)
    var status = stat()
    return try SystemCall.perform("lstat", path, accepting: ENOENT) { larder_lstat_without_times(path, &status) } ? FileStatus(status) : nil
  }

  /// Creates a file that must not exist yet, mode 0600.
  public func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    let descriptor = try Self.openDescriptor(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode: 0o600)
    let file = POSIXFile(path: path, descriptor: descriptor, isNew: true)
    try file.setMode(0o600)  // the umask may have taken bits of the owner's away
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

  /// Removes a file; no error when there is none.
  public func remove(_ path: String) throws(RepositoryError) {
    try Self.check(path)
    try SystemCall.perform("unlink", path, accepting: ENOENT) { unlink(path) }
  }

  /// Makes a directory and its missing parents, mode 0700, each synced into its parent before the next is made.
  public func createDirectory(_ path: String) throws(RepositoryError) {
    try Self.check(path)
    let parent = PathText.parent(of: path)
    switch try makeDirectory(path) {
    case .done(let isNew):
      // Of the directories on the way, only the last that is there can be one whose maker was killed before it synced it.
      try syncEntry(of: isNew == 1 ? parent : path)
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
    let closing = closeDescriptor(descriptor)
    if case .failed(let number) = outcome { throw .system(call, number, file: path) }
    if let closing, closing != EINTR { throw .system("close", closing, file: path) }
  }

  /// Returns the names in a directory without `.` and `..`; `nil` when there is no such directory.
  public func entries(of directory: String) throws(RepositoryError) -> [String]? {
    guard let descriptor = try Self.openExisting(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) else { return nil }
    guard let stream = fdopendir(descriptor) else {
      let number = errno
      _ = closeDescriptor(descriptor)
      throw .system("fdopendir", number, file: directory)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0  // the only way to tell the end from a failure
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

  /// Takes the lock with `flock`, and writes this process's id into the file for others to report.
  public func lock(_ path: String) throws(RepositoryError) -> any HeldLock {
    try Self.check(path)
    return try POSIXLock.acquire(path)
  }

  /// Takes part in the lock with `flock`; the file says what the process that is alone with it is doing.
  public func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock {
    try Self.check(path)
    return try POSIXSharedLock.acquire(path, waiting: timeout)
  }

  /// Makes one directory durably, or finds the one that is there: 1 or 0.
  private func makeDirectory(_ path: String) throws(RepositoryError) -> CallOutcome {
    switch SystemCall.uninterrupted({ Int(mkdir(path, 0o700)) }) {
    case .done:
      try SystemCall.perform("chmod", path) { chmod(path, 0o700) }
      try syncDirectory(path)
      try syncDirectory(PathText.parent(of: path))
      return .done(1)
    case .failed(EEXIST):
      var status = stat()
      try SystemCall.perform("stat", path) { stat(path, &status) }
      return status.st_mode & S_IFMT == S_IFDIR ? .done(0) : .failed(ENOTDIR)
    case .failed(let number):
      return .failed(number)
    }
  }

  /// Syncs a directory that was there into its parent, if that may be opened.
  private func syncEntry(of path: String) throws(RepositoryError) {
    do {
      try syncDirectory(PathText.parent(of: path))
    } catch {
      // A parent that is not ours to open (a container's, the system's) is not one in which this user made the directory.
      if error.code != .protectedDataUnavailable { throw error }
    }
  }

  private static func openDescriptor(_ path: String, _ flags: Int32, mode: mode_t = 0) throws(RepositoryError) -> Int32 {
    guard let descriptor = try openExisting(path, flags, mode: mode) else { throw .system("open", ENOENT, file: path) }
    return descriptor
  }

  /// Opens what stands at a path; `nil` when nothing does.
  private static func openExisting(_ path: String, _ flags: Int32, mode: mode_t = 0) throws(RepositoryError) -> Int32? {
    try check(path)
    var descriptor: Int32 = -1
    let isOpen = try SystemCall.perform("open", path, accepting: ENOENT) {
      descriptor = openFile(path, flags, mode)
      return descriptor
    }
    return isOpen ? descriptor : nil
  }

  /// Refuses a path that the system would read as another one: it ends at the first NUL, and a relative one moves with the process.
  private static func check(_ path: String) throws(RepositoryError) {
    if !path.hasPrefix("/") || path.utf8.contains(0) { throw .system("open", EINVAL, file: path) }
  }
}

/// The text of paths.
enum PathText {
  /// Returns the directory that holds a file, by text alone; "/" for the root itself.
  static func parent(of path: String) -> String {
    let parts = path.utf8.split(separator: UInt8(ascii: "/"))
    return "/" + parts.dropLast().map { String(Substring($0)) }.joined(separator: "/")
  }

  /// Returns the name of a file in its directory, byte for byte: `URL.lastPathComponent` leaves out a byte order mark.
  static func name(of path: String) -> String { path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? "/" }
}

// Methods named `open` and `rename` hide the functions of that name.
private func openFile(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }
private func renameEntry(_ path: String, _ newPath: String) -> Int32 { rename(path, newPath) }
