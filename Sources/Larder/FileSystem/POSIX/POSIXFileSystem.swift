// POSIX/ calls the operating system and turns `errno` into typed errors.
// Invariant: a failed sync is never repeated. After a failed sync, the kernel may have dropped the unsynced pages, and a second sync would
// succeed although their bytes are lost.
// Called by FileSystem.

internal import CLarderFiles
internal import Foundation

/// The operating system's file system, in which written data is on the medium after a sync of the file.
///
/// Use this file system unless a test needs a simulated one. Files have mode 0600 and directories 0700 regardless of the umask. A path that
/// ends in a symbolic link is refused with `.unsupported`. Directories on the way to the file may be links, because data directories and
/// `/tmp` often are. `rename` is the system's atomic call and throws if the system cannot rename atomically. On Darwin every sync is
/// `F_FULLFSYNC`, or `fsync` on file systems without it.
public struct POSIXFileSystem: FileSystem {
  /// Creates the file system, which holds no state.
  public init() {}

  /// Opens an existing file, or returns `nil` if there is no file.
  ///
  /// - Throws: `.unsupported` for a symbolic link or anything else that is not a plain file, otherwise the errors that ``FileSystem``
  ///   lists.
  public func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    guard let status = try status(of: path) else { return nil }
    // The kind is checked before `open`, because opening a device can have side effects.
    if status.kind != .file { throw .notAPlainFile(status.kind, path) }
    // A named pipe may have replaced the file since `lstat`, and opening it without O_NONBLOCK would block for ever. Plain files ignore
    // O_NONBLOCK.
    let flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    guard let descriptor = try Self.openExisting(path, flags) else { return nil }
    let file = POSIXFile(path: path, descriptor: descriptor, isNew: false)
    // Another file may have replaced the file since `lstat`. `fstat` returns the status of the file that is open.
    let kind = try file.status().kind
    if kind != .file { throw .notAPlainFile(kind, path) }
    return file
  }

  /// Returns the `lstat` status of a path, or `nil` if the path leads to nothing.
  ///
  /// On Linux `status(of:)` does not request the file's times. From Linux 6.13 on, a file whose times were read gets a new time at its next
  /// write, and the next sync must write the metadata too.
  public func status(of path: String) throws(RepositoryError) -> FileStatus? {
    try Self.check(path)
    var status = stat()
    return try SystemCall.perform("lstat", path, accepting: ENOENT) { larder_lstat_without_times(path, &status) } ? FileStatus(status) : nil
  }

  /// Creates a file that must not exist yet, with mode 0600.
  public func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    let descriptor = try Self.openDescriptor(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode: 0o600)
    let file = POSIXFile(path: path, descriptor: descriptor, isNew: true)
    // The umask may have removed permissions of the owner from the mode that `open` was given.
    try file.setMode(0o600)
    return file
  }

  /// Renames a file within its directory, atomically or not at all.
  ///
  /// - Throws: `.unsupported` if the directories differ, because the sync of one directory could not make the rename durable.
  public func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    try Self.check(path)
    try Self.check(newPath)
    guard PathText.parent(of: path) == PathText.parent(of: newPath) else {
      throw RepositoryError(.unsupported, "a file is renamed within its directory only", file: path)
    }
    try SystemCall.perform("rename", newPath) { renameEntry(path, newPath) }
  }

  /// Removes a file, or does nothing if there is no file.
  public func remove(_ path: String) throws(RepositoryError) {
    try Self.check(path)
    // Removing a file that does not exist succeeds, so that a caller can repeat a removal after a crash.
    try SystemCall.perform("unlink", path, accepting: ENOENT) { unlink(path) }
  }

  /// Creates a directory and its missing parents with mode 0700, and makes each directory durable before it creates the next one.
  public func createDirectory(_ path: String) throws(RepositoryError) {
    try Self.check(path)
    let parent = PathText.parent(of: path)
    switch try makeDirectory(path) {
    case .done(let isNew):
      // A process may have been killed between creating a directory and syncing it into its parent. Only the last existing directory of a
      // path can lack the sync into its parent, because each directory is synced before the next one is created.
      try syncEntry(of: isNew == 1 ? parent : path)
    // ENOENT means that the parent is missing. The root is its own parent, so the condition `parent != path` ends the recursion.
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
    // The descriptor is closed before an error is thrown, because it would leak otherwise.
    let closing = closeDescriptor(descriptor)
    if case .failed(let number) = outcome { throw .system(call, number, file: path) }
    if let closing, closing != EINTR { throw .system("close", closing, file: path) }
  }

  /// Returns the names in a directory without `.` and `..`, or `nil` if there is no such directory.
  public func entries(of directory: String) throws(RepositoryError) -> [String]? {
    guard let descriptor = try Self.openExisting(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) else { return nil }
    guard let stream = fdopendir(descriptor) else {
      // A `fdopendir` that fails does not take over the descriptor, so `entries(of:)` must close the descriptor.
      let number = errno
      _ = closeDescriptor(descriptor)
      throw .system("fdopendir", number, file: directory)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      // `readdir` returns nil both at the end and after a failure. Only `errno` distinguishes the end from a failure, so `errno` is cleared
      // before the call.
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

  /// Takes the exclusive lock with `flock`, and writes this process's id into the lock file for the error messages of other processes.
  public func lock(_ path: String) throws(RepositoryError) -> any HeldLock {
    try Self.check(path)
    return try POSIXLock.acquire(path)
  }

  /// Takes a shared lock with `flock`, which stays exclusive until its first holder shares it.
  ///
  /// The text of the lock file says whether the lock's holder shares the lock, or holds it exclusively while it opens or closes the store.
  public func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock {
    try Self.check(path)
    return try POSIXSharedLock.acquire(path, waiting: timeout)
  }

  /// Creates one directory durably, and returns 1 if the directory is new or 0 if it existed.
  private func makeDirectory(_ path: String) throws(RepositoryError) -> CallOutcome {
    switch SystemCall.uninterrupted({ Int(mkdir(path, 0o700)) }) {
    case .done:
      // The umask may have removed permissions of the owner from the mode that `mkdir` was given.
      try SystemCall.perform("chmod", path) { chmod(path, 0o700) }
      try syncDirectory(path)
      // The directory's name is an entry of the parent, so a power cut before the sync of the parent could remove the whole directory.
      try syncDirectory(PathText.parent(of: path))
      return .done(1)
    case .failed(EEXIST):
      // `stat` is used instead of `lstat`, because directories on the way to a file may be symbolic links.
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
      // A user normally cannot create a directory in a parent that the user may not open, such as a directory of the system. A parent that
      // this process may not open thus has no unsynced entry of this user.
      if error.code != .protectedDataUnavailable { throw error }
    }
  }

  private static func openDescriptor(_ path: String, _ flags: Int32, mode: mode_t = 0) throws(RepositoryError) -> Int32 {
    guard let descriptor = try openExisting(path, flags, mode: mode) else { throw .system("open", ENOENT, file: path) }
    return descriptor
  }

  /// Opens the file at a path, or returns `nil` if the path leads to nothing.
  private static func openExisting(_ path: String, _ flags: Int32, mode: mode_t = 0) throws(RepositoryError) -> Int32? {
    try check(path)
    var descriptor: Int32 = -1
    let isOpen = try SystemCall.perform("open", path, accepting: ENOENT) {
      descriptor = openFile(path, flags: flags, mode: mode)
      return descriptor
    }
    return isOpen ? descriptor : nil
  }

  /// Throws for a relative path, which depends on the working directory, and for a path with a NUL, at which the system would cut it.
  private static func check(_ path: String) throws(RepositoryError) {
    if !path.hasPrefix("/") || path.utf8.contains(0) { throw .system("open", EINVAL, file: path) }
  }
}

/// Operations on file paths as text, without access to the file system.
enum PathText {
  /// Returns the path of the directory that holds a file, computed from the text of the path alone.
  ///
  /// The parent of the root "/" is "/".
  static func parent(of path: String) -> String {
    // The path is split at bytes and not at characters, because a slash and a combining mark after it form one character that does not
    // equal a slash.
    let parts = path.utf8.split(separator: UInt8(ascii: "/"))
    return "/" + parts.dropLast().map { String(Substring($0)) }.joined(separator: "/")
  }

  /// Returns the name of a file in its directory, byte for byte.
  ///
  /// `URL.lastPathComponent` would leave out a byte order mark at the beginning of the name.
  static func name(of path: String) -> String { path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? "/" }
}

/// File names that are short enough for every common file system.
enum FileName {
  /// Largest number of bytes in a file name, which is NAME_MAX of every common file system.
  static let limit = 255

  /// Returns a name unchanged, or shortened to its beginning and a checksum if `name` and a suffix of `count` bytes exceed ``limit``.
  static func shortened(_ name: String, leaving count: Int) -> String {
    guard name.utf8.count + count > limit else { return name }
    // The checksum keeps two long names with the same beginning from becoming one name.
    let checksum = "-" + Hexadecimal.string(Array(name.utf8).withUnsafeBytes { CRC32C.checksum($0) })
    // Whole characters are removed, so that the shortened name stays valid UTF-8.
    var stem = name[...]
    while stem.utf8.count + checksum.utf8.count + count > limit, !stem.isEmpty { stem.removeLast() }
    return stem + checksum
  }
}

// `openFile` and `renameEntry` exist because the methods `open` and `rename` hide the C functions of the same names.
private func openFile(_ path: String, flags: Int32, mode: mode_t) -> Int32 { open(path, flags, mode) }
private func renameEntry(_ path: String, _ newPath: String) -> Int32 { rename(path, newPath) }
