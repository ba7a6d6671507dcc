internal import Foundation
package import Larder

/// Files and directories of a simulated machine, with their visible and their durable state.
///
/// Every change stays in an ordered list until a sync covers it. Programs see the durable state with the whole list applied. A power cut
/// leaves the durable state with a part of the list applied. The type is a value, so that a crash image is made from a copy.
struct SimulatedDisk: Sendable {
  /// Change of a file that a power cut can lose on its own.
  enum FileChange: Sendable {
    /// Write of bytes.
    ///
    /// Bytes beyond the size of the file are dropped.
    case data(offset: Int, bytes: [UInt8])
    /// Growth of the file, whose unwritten bytes are zero.
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

  enum Entry: Hashable, Sendable {
    case file(Int)
    case directory
  }

  /// Durability of a change in the list.
  enum Standing: Sendable {
    /// No sync has covered the change yet.
    case open
    /// The change is durable, and stays in the list because an older change is not.
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

  /// Durable and visible state of a file or a directory, and the list of changes between the two.
  struct Tracked<Image: ChangeableImage>: Sendable {
    var durable = Image()
    var current = Image()
    var changes: [Logged<Image.Change>] = []

    mutating func record(_ change: Image.Change) {
      current.apply(change)
      changes.append(Logged(change: change, standing: .open))
    }

    /// Makes the open changes durable, or marks them as abandoned if the sync fails.
    mutating func sync(fails: Bool) {
      for index in changes.indices where changes[index].standing == .open { changes[index].standing = fails ? .abandoned : .synced }
      // Only up to the first change that is not synced. A power cut may lose that one, and applies the later ones after it.
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
      // With `memset`: a loop over bytes would take most of the time of a debug test run.
      bytes = [UInt8](unsafeUninitializedCapacity: size) { [bytes] buffer, count in
        let target = UnsafeMutableRawBufferPointer(buffer)
        bytes.withUnsafeBytes { target.copyMemory(from: $0) }
        if let base = target.baseAddress { memset(base + bytes.count, 0, size - bytes.count) }
        count = size
      }
    }

    /// Overwrites bytes within the size of the file, and drops the others.
    mutating func write(_ data: UnsafeRawBufferPointer, at offset: Int) {
      // A power cut may keep a write and lose the growth before it, and then some of its bytes have no place.
      let count = min(data.count, bytes.count - offset)
      guard count > 0, let source = data.baseAddress else { return }
      bytes.withUnsafeMutableBytes { target in
        target.baseAddress?.advanced(by: offset).copyMemory(from: source, byteCount: count)
      }
    }
  }

  /// Files by number, which is like an inode.
  ///
  /// A name is an entry of a directory, and an open file outlives its name.
  var files: [Int: File] = [:]
  /// Directories by path.
  var directories: [String: Directory] = ["/": Directory()]
  private(set) var nextFile = 1

  // MARK: Names

  /// Splits a path into its directory and its name.
  static func split(_ path: String) -> (directory: String, name: String) {
    // In UTF-8, which is faster than by characters, because every call splits a path.
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return ("", path) }
    let directory = slash == path.startIndex ? "/" : String(path[..<slash])
    return (directory, String(path[path.utf8.index(after: slash)...]))
  }

  static func join(_ directory: String, _ name: String) -> String { directory == "/" ? "/" + name : directory + "/" + name }

  /// Returns the entry at a path, or `nil` if there is none.
  ///
  /// - Throws: `.inputOutput` if a file is in the place of a directory of the path.
  func entry(at path: String) throws(RepositoryError) -> Entry? {
    if directories[path] != nil { return .directory }
    let (directory, name) = Self.split(path)
    if let found = directories[directory] { return found.current[name] }
    guard directory.hasPrefix("/"), directory != path else { throw .simulated("open", EINVAL, path) }
    if case .file = try entry(at: directory) { throw .simulated("open", ENOTDIR, path) }
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
    if try entry(at: path) != nil { throw .simulated("open", EEXIST, path) }
    let (directory, name) = Self.split(path)
    guard directories[directory] != nil else { throw .simulated("open", ENOENT, path) }
    // A new number for every file, also for a name that was used before: an open file still has the old one.
    let number = nextFile
    nextFile += 1
    files[number] = File()
    directories[directory]?.record(.link(name: name, entry: .file(number)))
    return number
  }

  mutating func write(_ bytes: UnsafeRawBufferPointer, at offset: Int, to number: Int) {
    guard !bytes.isEmpty else { return }
    // Growth is a change of its own: file systems may write the size before the bytes, and a crash then leaves zeros.
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
    // Larder never renames across directories, and a change of two directories would need an order of two syncs.
    guard directory == newDirectory else {
      throw RepositoryError(.unsupported, "expected a new name in the same directory, found another directory", file: path)
    }
    guard let entry = try entry(at: path) else { throw .simulated("rename", ENOENT, path) }
    guard case .file = entry, try self.entry(at: newPath) != .directory else { throw .simulated("rename", EISDIR, newPath) }
    if name != newName { directories[directory]?.record(.rename(from: name, to: newName, entry: entry)) }
  }

  mutating func remove(_ path: String) throws(RepositoryError) {
    if try entry(at: path) == .directory { throw .simulated("unlink", EISDIR, path) }
    // The contents stay in `files`: an open file outlives its name, and a power cut may bring the name back.
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

  /// Makes the open changes of a file durable, or abandons them if the sync fails.
  mutating func sync(_ number: Int, fails: Bool = false) { files[number]?.sync(fails: fails) }

  /// Makes the open changes of a directory durable, or abandons them if the sync fails.
  mutating func syncDirectory(_ path: String, fails: Bool = false) { directories[path]?.sync(fails: fails) }

  /// Puts a file at a path, with durable contents and a durable name.
  mutating func place(_ bytes: [UInt8], mode: UInt16, at path: String) throws(RepositoryError) {
    let (directory, name) = Self.split(path)
    guard directories[directory] != nil, try entry(at: path) != .directory else { throw .simulated("open", ENOENT, path) }
    let number = nextFile
    nextFile += 1
    // The same image twice and no changes: nothing of the file can be lost.
    let image = FileImage(bytes: bytes, mode: mode)
    files[number] = File(durable: image, current: image)
    directories[directory]?.record(.link(name: name, entry: .file(number)))
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
      // After a power cut that lost an earlier change, the old name may belong to another file.
      if self[old] == entry { self[old] = nil }
      self[new] = entry
    }
  }
}

extension RepositoryError {
  /// Returns the error that the real file layer throws for a failed system call.
  package static func simulated(_ call: String, _ number: Int32, _ path: String) -> RepositoryError {
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
