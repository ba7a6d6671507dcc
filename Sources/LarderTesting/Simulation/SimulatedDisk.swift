internal import Foundation
package import Larder

/// Files and directories of a simulated machine, each with a visible state (for programs) and a durable state (after a power cut).
///
/// Every change of a file or directory stays in an ordered list until a sync covers it. Programs read the durable state with all listed
/// changes applied. A power cut leaves the durable state with some of the listed changes applied. `SimulatedDisk` is a value type, so that
/// a copy of a disk is an image of the disk at the moment of a crash.
struct SimulatedDisk: Sendable {
  /// Change of a file that a power cut can lose on its own.
  enum FileChange: Sendable {
    /// Write of bytes at an offset of the file.
    ///
    /// If a write makes the file larger, the growth is a separate change. If a power cut loses the growth and keeps the write, the written
    /// bytes beyond the size of the file are dropped.
    case data(offset: Int, bytes: [UInt8])
    /// Growth of the file to a larger size, with zeros at the end.
    case growth(to: Int)
    /// Cut of the file to a smaller size.
    case cut(to: Int)
    case mode(UInt16)
  }

  /// Change of a directory that a power cut can lose on its own.
  enum EntryChange: Sendable {
    case link(name: String, entry: Entry)
    case unlink(name: String)
    case rename(from: String, to: String, entry: Entry)
  }

  /// Entry of a directory: a file, by its number, or another directory.
  enum Entry: Hashable, Sendable {
    case file(Int)
    case directory
  }

  /// Durability of one change in the list of changes.
  enum Standing: Sendable {
    /// No sync has covered the change yet.
    case open
    /// The change is durable, and stays in the list because an older change in the list is not durable.
    case synced
    /// The sync of the change failed.
    ///
    /// The change may be lost, and no later sync covers it.
    case abandoned
  }

  struct Logged<Change: Sendable>: Sendable {
    var change: Change
    var standing: Standing
  }

  /// Durable and visible state of a file or a directory, and the list of changes that lead from the durable to the visible state.
  struct Tracked<Image: ChangeableImage>: Sendable {
    var durable = Image()
    var current = Image()
    var changes: [Logged<Image.Change>] = []

    mutating func record(_ change: Image.Change) {
      current.apply(change)
      changes.append(Logged(change: change, standing: .open))
    }

    /// Makes the changes durable that no sync has covered yet, or marks them as abandoned if the sync fails.
    mutating func sync(fails: Bool) {
      for index in changes.indices where changes[index].standing == .open { changes[index].standing = fails ? .abandoned : .synced }
      // Synced changes after an abandoned change stay in the list. If the synced changes moved to the durable state, a power cut that keeps
      // the abandoned change would apply the older change after the newer ones, and overwrite newer bytes.
      let covered = changes.prefix { $0.standing == .synced }
      for logged in covered { durable.apply(logged.change) }
      changes.removeFirst(covered.count)
    }
  }
  typealias File = Tracked<FileImage>
  typealias Directory = Tracked<[String: Entry]>

  struct FileImage: ChangeableImage {
    var bytes: [UInt8] = []
    var mode: UInt16 = 0o600

    mutating func apply(_ change: FileChange) {
      switch change {
      case .growth(let size): grow(to: size)
      case .cut(let size): bytes.removeLast(max(bytes.count - size, 0))
      case .mode(let mode): self.mode = mode
      case .data(let offset, let data): data.withUnsafeBytes { write($0, at: offset) }
      }
    }

    /// Appends zeros up to a size.
    mutating func grow(to size: Int) {
      guard size > bytes.count else { return }
      // The zeros are written with `memset`, because a loop over the bytes would take most of the time of a test run in a debug build.
      bytes = [UInt8](unsafeUninitializedCapacity: size) { [bytes] buffer, count in
        let target = UnsafeMutableRawBufferPointer(buffer)
        bytes.withUnsafeBytes { target.copyMemory(from: $0) }
        if let base = target.baseAddress { memset(base + bytes.count, 0, size - bytes.count) }
        count = size
      }
    }

    /// Overwrites bytes within the size of the file, and drops the written bytes beyond that size.
    mutating func write(_ data: UnsafeRawBufferPointer, at offset: Int) {
      // If a power cut keeps a write and loses the growth before it, some bytes of the write lie beyond the end of the file.
      let count = min(data.count, bytes.count - offset)
      guard count > 0, let source = data.baseAddress else { return }
      bytes.withUnsafeMutableBytes { target in
        target.baseAddress?.advanced(by: offset).copyMemory(from: source, byteCount: count)
      }
    }
  }

  /// Files by number, which corresponds to the number of an inode.
  ///
  /// The name of a file is an entry of a directory. A file without a name stays in `files`, because a program that has the file open can
  /// still read and write it.
  var files: [Int: File] = [:]
  /// Directories by path.
  var directories: [String: Directory] = ["/": Directory()]
  private(set) var nextFile = 1

  // MARK: Names

  /// Splits a path into its directory and its name.
  static func split(_ path: String) -> (directory: String, name: String) {
    // Every call splits a path, and a search for the slash by UTF-8 bytes is faster than by characters.
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return ("", path) }
    let directory = slash == path.startIndex ? "/" : String(path[..<slash])
    return (directory, String(path[path.utf8.index(after: slash)...]))
  }

  static func join(_ directory: String, _ name: String) -> String { directory == "/" ? "/" + name : directory + "/" + name }

  /// Returns the entry at a path, or `nil` if there is none.
  ///
  /// - Throws: `.inputOutput` if a file is in the place of a directory of the path, or if the path is not absolute.
  func entry(at path: String) throws(RepositoryError) -> Entry? {
    if directories[path] != nil { return .directory }
    let (directory, name) = Self.split(path)
    if let found = directories[directory] { return found.current[name] }
    guard directory.hasPrefix("/"), directory != path else { throw .simulated("open", errorNumber: EINVAL, at: path) }
    if case .file = try entry(at: directory) { throw .simulated("open", errorNumber: ENOTDIR, at: path) }
    return nil
  }

  func file(at path: String) throws(RepositoryError) -> Int? {
    switch try entry(at: path) {
    case .file(let number): number
    case .directory: throw RepositoryError(.unsupported, "expected a plain file, found a directory", file: path)
    case nil: nil
    }
  }

  // MARK: Changes

  mutating func create(_ path: String) throws(RepositoryError) -> Int {
    if try entry(at: path) != nil { throw .simulated("open", errorNumber: EEXIST, at: path) }
    let (directory, name) = Self.split(path)
    guard directories[directory] != nil else { throw .simulated("open", errorNumber: ENOENT, at: path) }
    // A new file gets a new number, even under a name that was used before, because an open file may still use the old number.
    let number = nextFile
    nextFile += 1
    files[number] = File()
    directories[directory]?.record(.link(name: name, entry: .file(number)))
    return number
  }

  mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int, to number: Int) {
    guard !bytes.isEmpty else { return }
    // The growth is recorded as a separate change, because a file system may write the size before the bytes. A crash between the write of
    // the size and the write of the bytes leaves zeros.
    let end = offset + bytes.count
    if let size = files[number]?.current.bytes.count, end > size { files[number]?.record(.growth(to: end)) }
    let copy = [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, count in
      UnsafeMutableRawBufferPointer(buffer).copyMemory(from: bytes)
      count = bytes.count
    }
    files[number]?.record(.data(offset: offset, bytes: copy))
  }

  mutating func cut(_ number: Int, to size: Int) {
    if let old = files[number]?.current.bytes.count, size < old { files[number]?.record(.cut(to: size)) }
  }

  mutating func setMode(_ mode: UInt16, of number: Int) { files[number]?.record(.mode(mode)) }

  mutating func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    let (directory, name) = Self.split(path)
    let (newDirectory, newName) = Self.split(newPath)
    // A rename into another directory is refused, because Larder never makes one. A rename into another directory would change two
    // directories, and an `EntryChange` belongs to one directory.
    guard directory == newDirectory else {
      throw RepositoryError(.unsupported, "expected a new name in the same directory, found another directory", file: path)
    }
    guard let entry = try entry(at: path) else { throw .simulated("rename", errorNumber: ENOENT, at: path) }
    guard case .file = entry, try self.entry(at: newPath) != .directory else {
      throw .simulated("rename", errorNumber: EISDIR, at: newPath)
    }
    // A rename of a file to its own name changes nothing, as POSIX demands.
    if name != newName { directories[directory]?.record(.rename(from: name, to: newName, entry: entry)) }
  }

  mutating func remove(_ path: String) throws(RepositoryError) {
    if try entry(at: path) == .directory { throw .simulated("unlink", errorNumber: EISDIR, at: path) }
    // The contents of the removed file stay in `files`, because a program may have the file open, and because a power cut may bring the
    // name back.
    guard try file(at: path) != nil else { return }
    let (directory, name) = Self.split(path)
    directories[directory]?.record(.unlink(name: name))
  }

  mutating func makeDirectory(_ path: String) {
    let (directory, name) = Self.split(path)
    directories[path] = Directory()
    directories[directory]?.record(.link(name: name, entry: .directory))
  }

  // MARK: Syncs

  /// Makes the changes of a file durable that no sync has covered yet, or abandons them if the sync fails.
  mutating func sync(_ number: Int, fails: Bool = false) { files[number]?.sync(fails: fails) }

  /// Makes the changes of a directory durable that no sync has covered yet, or abandons them if the sync fails.
  mutating func syncDirectory(_ path: String, fails: Bool = false) { directories[path]?.sync(fails: fails) }

  /// Puts a file at a path, with durable contents and a durable name.
  mutating func place(_ bytes: [UInt8], mode: UInt16, at path: String) throws(RepositoryError) {
    let (directory, name) = Self.split(path)
    guard directories[directory] != nil, try entry(at: path) != .directory else { throw .simulated("open", errorNumber: ENOENT, at: path) }
    let number = nextFile
    nextFile += 1
    // The durable and the visible image are equal and the list of changes is empty, so a power cut loses nothing of the file.
    let image = FileImage(bytes: bytes, mode: mode)
    files[number] = File(durable: image, current: image)
    directories[directory]?.record(.link(name: name, entry: .file(number)))
    // The sync of the directory makes the new name durable, and all earlier unsynced changes of the directory as well.
    syncDirectory(directory)
  }
}

/// Contents of a file or entries of a directory, to which changes are applied.
protocol ChangeableImage: Sendable {
  associatedtype Change: Sendable
  init()
  mutating func apply(_ change: Change)
}

extension [String: SimulatedDisk.Entry]: ChangeableImage {
  mutating func apply(_ change: SimulatedDisk.EntryChange) {
    switch change {
    case .link(let name, let entry): self[name] = entry
    case .unlink(let name): self[name] = nil
    case .rename(let old, let new, let entry):
      // The rename removes the old name only if the name belongs to the renamed file. After a power cut that has lost an earlier change,
      // the old name may belong to another file.
      if self[old] == entry { self[old] = nil }
      self[new] = entry
    }
  }
}

extension RepositoryError {
  /// Returns an error with the code that the real file layer gives to a failed system call with this error number.
  package static func simulated(_ call: String, errorNumber number: Int32, at path: String) -> RepositoryError {
    let code: Code =
      switch number {
      case ENOSPC, EDQUOT, EFBIG: .full
      case EACCES, EPERM: .protectedDataUnavailable
      case ELOOP: .unsupported
      default: .inputOutput
      }
    return RepositoryError(code, "a planned fault failed \(call)", file: path, underlying: SystemCallError(call: call, errorNumber: number))
  }
}
