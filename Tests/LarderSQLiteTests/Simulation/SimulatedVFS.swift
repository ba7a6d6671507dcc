import CSQLite
import Foundation
import Larder
import LarderTesting
import Synchronization

/// SQLite's way to the files of a ``MirroredDirectory``: a VFS that asks the simulated disk before it lets the real one act.
///
/// It becomes the default of this process, and passes everything on for files of other directories. Results are those that SQLite's own layer
/// for Unix has for the same error numbers, with its repetitions: it repeats calls that a signal interrupted, opens a database for reading
/// that it could not open for writing, and does not tell of a directory that could not be synced.
enum SimulatedVFS {
  /// The open file of a mirrored directory; SQLite's structure for it refers to this.
  final class Opened {
    let mirror: MirroredDirectory
    let path: String
    let model: any OpenFile
    let deletesOnClose: Bool
    /// Whether the first sync also makes the file's name durable.
    var syncsDirectory: Bool
    var lastErrorNumber: Int32 = 0

    init(_ mirror: MirroredDirectory, _ path: String, _ model: any OpenFile, deletesOnClose: Bool, syncsDirectory: Bool) {
      self.mirror = mirror
      self.path = path
      self.model = model
      self.deletesOnClose = deletesOnClose
      self.syncsDirectory = syncsDirectory
    }
  }

  private static let mirrors = Mutex<[String: WeakMirror]>([:])
  private struct WeakMirror { weak let mirror: MirroredDirectory? }

  static func add(_ mirror: MirroredDirectory) { mirrors.withLock { $0[mirror.path] = WeakMirror(mirror: mirror) } }
  static func remove(_ path: String) { mirrors.withLock { $0[path] = nil } }

  /// Returns the directory of a file; `nil` where that is not a mirrored one.
  private static func mirror(of path: String) -> MirroredDirectory? {
    guard let slash = path.lastIndex(of: "/") else { return nil }
    return mirrors.withLock { $0[String(path[..<slash])]?.mirror }
  }

  /// Puts the layer in place, once for the process, before that of ``FaultyFiles``.
  static let isInstalled: Bool = {
    guard FaultyFiles.isInstalled, let next = nextVFS else { return false }
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    vfs.initialize(to: next.pointee)
    vfs.pointee.zName = UnsafePointer(strdup("larder-simulated"))
    vfs.pointee.pNext = nil
    vfs.pointee.szOsFile = next.pointee.szOsFile + Int32(SimulatedVFSFile.headerSize)
    vfs.pointee.xOpen = { _, name, file, flags, outFlags in
      guard let file, let next = nextVFS else { return SQLITE_CANTOPEN }
      guard let name, let mirror = mirror(of: String(cString: name)) else { return next.pointee.xOpen(next, name, file, flags, outFlags) }
      return open(name, mirror, file, flags, outFlags)
    }
    vfs.pointee.xDelete = { _, name, syncsDirectory in
      guard let next = nextVFS, let name else { return SQLITE_IOERR_DELETE }
      guard let mirror = mirror(of: String(cString: name)) else { return next.pointee.xDelete(next, name, syncsDirectory) }
      return delete(name, mirror, syncsDirectory: syncsDirectory != 0)
    }
    return sqlite3_vfs_register(vfs, 1) == SQLITE_OK
  }()

  static var nextVFS: UnsafeMutablePointer<sqlite3_vfs>? { sqlite3_vfs_find("larder-faults") }

  // MARK: Calls of the disk

  /// Makes a call of the simulated disk; returns the error number when it fails.
  ///
  /// - Parameters:
  ///   - repeats: Whether the call is made again when a signal interrupts it, as all are but syncs.
  ///   - body: The call.
  static func attempt(repeating repeats: Bool = true, _ body: () throws(RepositoryError) -> Void) -> Int32? {
    while true {
      do throws(RepositoryError) {
        try body()
        return nil
      } catch {
        let number = (error.underlying as? SystemCallError)?.errorNumber ?? EIO
        // From there SQLite asks for it.
        errno = number
        if number != EINTR || !repeats { return number }
      }
    }
  }

  private static func open(
    _ name: UnsafePointer<CChar>, _ mirror: MirroredDirectory, _ file: UnsafeMutablePointer<sqlite3_file>, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    guard let next = nextVFS, let path = mirror.modelPath(String(cString: name)) else { return SQLITE_CANTOPEN }
    file.pointee.pMethods = nil
    var flags = flags
    var model: (any OpenFile)?
    var failure = attempt { () throws(RepositoryError) in
      model = try mirror.model.open(path, writable: flags & SQLITE_OPEN_READWRITE != 0)
      if model == nil, flags & SQLITE_OPEN_CREATE != 0 {
        model = try mirror.model.create(path)
      }
    }
    if failure != nil, flags & SQLITE_OPEN_READWRITE != 0 {
      flags = flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) | SQLITE_OPEN_READONLY
      failure = attempt { () throws(RepositoryError) in model = try mirror.model.open(path, writable: false) }
    }
    guard failure == nil, let model else { return SQLITE_CANTOPEN }
    let result = next.pointee.xOpen(next, name, SimulatedVFSFile.real(file), flags, outFlags)
    guard result == SQLITE_OK else { return result }
    let kinds = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL | SQLITE_OPEN_SUPER_JOURNAL
    // Also of a file that was there already: the process that made it may not have lived to sync its name.
    let syncsDirectory = flags & SQLITE_OPEN_CREATE != 0 && flags & kinds != 0
    let opened = Opened(
      mirror, path, model, deletesOnClose: flags & SQLITE_OPEN_DELETEONCLOSE != 0, syncsDirectory: syncsDirectory)
    SimulatedVFSFile.begin(file, opened)
    return SQLITE_OK
  }

  private static func delete(_ name: UnsafePointer<CChar>, _ mirror: MirroredDirectory, syncsDirectory: Bool) -> Int32 {
    guard let next = nextVFS, let path = mirror.modelPath(String(cString: name)) else { return SQLITE_IOERR_DELETE }
    // The index of the log is not mirrored.
    if !path.hasSuffix("-shm") {
      if mirror.model.contents(of: path) == nil { return SQLITE_IOERR_DELETE_NOENT }
      if attempt({ () throws(RepositoryError) in try mirror.model.remove(path) }) != nil { return SQLITE_IOERR_DELETE }
    }
    let result = next.pointee.xDelete(next, name, 0)
    guard result == SQLITE_OK, syncsDirectory else { return result }
    return attempt { () throws(RepositoryError) in try mirror.syncDirectory() } == nil ? SQLITE_OK : SQLITE_IOERR_DIR_FSYNC
  }
}

// The macros that Swift does not import.
let SQLITE_IOERR_READ = SQLITE_IOERR | 1 << 8
let SQLITE_IOERR_SHORT_READ = SQLITE_IOERR | 2 << 8
let SQLITE_IOERR_WRITE = SQLITE_IOERR | 3 << 8
let SQLITE_IOERR_FSYNC = SQLITE_IOERR | 4 << 8
let SQLITE_IOERR_DIR_FSYNC = SQLITE_IOERR | 5 << 8
let SQLITE_IOERR_TRUNCATE = SQLITE_IOERR | 6 << 8
let SQLITE_IOERR_FSTAT = SQLITE_IOERR | 7 << 8
let SQLITE_IOERR_DELETE = SQLITE_IOERR | 10 << 8
let SQLITE_IOERR_DELETE_NOENT = SQLITE_IOERR | 23 << 8
let SQLITE_IOERR_CORRUPTFS = SQLITE_IOERR | 33 << 8
