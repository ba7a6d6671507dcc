import CSQLite
import Foundation
import Synchronization

@testable import LarderSQLite

/// Faults of SQLite's own file operations, where a test asks for them: a VFS before the system's.
///
/// It becomes the default of this process, and passes everything on for files that no test has named.
enum FaultyFiles {
  enum Operation: Hashable { case open, read, write, sync, map, status }

  /// A failure of the n-th operation from now on a file.
  struct Fault {
    var operation: Operation
    var countdown: Int
    var result: Int32
    /// Whether later operations fail too.
    var lasts = false
    /// Whether what is to be written reaches the file all the same.
    var happens = false
    /// The system's number for it.
    var errorNumber: Int32 = 0
  }

  /// The pages of a file that only the page cache has.
  private struct Cached {
    var dirty: Set<Int> = []
    /// Those that a failed sync left behind: the system takes them for written.
    var lost: Set<Int> = []
  }

  private struct State {
    var faults: [String: Fault] = [:]
    /// The files that are open, by the address of SQLite's structure.
    var paths: [UInt: String] = [:]
    /// The system's way to reach them, also where a connection has put its own before ours.
    var originals: [UInt: UInt] = [:]
    var counts: [String: [Operation: Int]] = [:]
    var cached: [String: Cached] = [:]
    /// The sizes of the disks that databases have for themselves, by the paths of these.
    var disks: [String: Int] = [:]
    /// The numbers of the failures that the files have met.
    var errorNumbers: [String: Int32] = [:]
  }
  private static let state = Mutex(State())

  /// Puts the layer in place, once for the process.
  static let isInstalled: Bool = {
    guard let system = sqlite3_vfs_find(nil) else { return false }
    let vfs = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    vfs.initialize(to: system.pointee)
    vfs.pointee.zName = UnsafePointer(strdup("larder-faults"))
    vfs.pointee.pNext = nil
    vfs.pointee.xOpen = { _, name, file, flags, outFlags in
      // The original is found anew: a C function pointer captures nothing.
      guard let system = sqlite3_vfs_find("unix"), let open = system.pointee.xOpen, let file else { return SQLITE_CANTOPEN }
      let result = open(system, name, file, flags, outFlags)
      if result == SQLITE_OK, let name, let methods = file.pointee.pMethods {
        FaultyFiles.state.withLock { state in
          state.paths[UInt(bitPattern: file)] = String(cString: name)
          state.originals[UInt(bitPattern: file)] = UInt(bitPattern: methods)
          state.counts[String(cString: name), default: [:]][.open, default: 0] += 1
          state.errorNumbers[String(cString: name)] = nil
        }
        file.pointee.pMethods = FaultyFiles.wrapped(methods)
      }
      return result
    }
    return sqlite3_vfs_register(vfs, 1) == SQLITE_OK
  }()

  /// The originals behind the copies, of which there are as many as the system has kinds of files.
  private static let originals = Mutex<[UInt: UInt]>([:])

  private static func wrapped(_ methods: UnsafePointer<sqlite3_io_methods>) -> UnsafePointer<sqlite3_io_methods> {
    let known = originals.withLock { $0.first { $0.value == UInt(bitPattern: methods) }?.key }
    if let known, let copy = UnsafePointer<sqlite3_io_methods>(bitPattern: known) { return copy }
    let copy = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    copy.initialize(to: methods.pointee)
    copy.pointee.xWrite = { file, bytes, count, offset in
      let original = FaultyFiles.original(file)?.xWrite
      let fault = FaultyFiles.meet(.write, file)
      if let fault, !fault.happens {
        if fault.errorNumber != 0 { errno = fault.errorNumber }
        return fault.result
      }
      if let path = FaultyFiles.path(file), !FaultyFiles.hasRoom(for: Int(offset) + Int(count), at: path) { return SQLITE_FULL }
      let result = original?(file, bytes, count, offset) ?? SQLITE_IOERR
      if let path = FaultyFiles.path(file) { FaultyFiles.noteWrite(Int(offset), Int(count), at: path) }
      return fault?.result ?? result
    }
    copy.pointee.xRead = { file, bytes, count, offset in
      let original = FaultyFiles.original(file)?.xRead
      if let fault = FaultyFiles.meet(.read, file) { return fault.result }
      return original?(file, bytes, count, offset) ?? SQLITE_IOERR
    }
    copy.pointee.xSync = { file, flags in
      let original = FaultyFiles.original(file)?.xSync
      let fault = FaultyFiles.meet(.sync, file)
      if let path = FaultyFiles.path(file) { FaultyFiles.noteSync(fails: fault != nil, at: path) }
      if let fault {
        if fault.errorNumber != 0 { errno = fault.errorNumber }
        return fault.result
      }
      return original?(file, flags) ?? SQLITE_IOERR
    }
    copy.pointee.xTruncate = { file, size in
      if let path = FaultyFiles.path(file) { FaultyFiles.noteSize(Int(size), at: path) }
      return FaultyFiles.original(file)?.xTruncate?(file, size) ?? SQLITE_IOERR
    }
    copy.pointee.xFileControl = { file, operation, argument in
      // What SQLite says when it cannot read the status of a name: that the file is not there any more.
      if operation == SQLITE_FCNTL_HAS_MOVED, let fault = FaultyFiles.meet(.status, file) {
        argument?.storeBytes(of: 1, as: Int32.self)
        return fault.result
      }
      if operation == SQLITE_FCNTL_LAST_ERRNO, let path = FaultyFiles.path(file),
        let number = FaultyFiles.state.withLock({ $0.errorNumbers[path] }), number != 0
      {
        argument?.storeBytes(of: number, as: Int32.self)
        return SQLITE_OK
      }
      return FaultyFiles.original(file)?.xFileControl?(file, operation, argument) ?? SQLITE_IOERR
    }
    if methods.pointee.iVersion > 1, methods.pointee.xShmMap != nil {
      copy.pointee.xShmMap = { file, region, size, extends, address in
        if let fault = FaultyFiles.meet(.map, file) {
          errno = fault.errorNumber
          return fault.result
        }
        return FaultyFiles.original(file)?.xShmMap?(file, region, size, extends, address) ?? SQLITE_IOERR
      }
    }
    originals.withLock { $0[UInt(bitPattern: copy)] = UInt(bitPattern: methods) }
    return UnsafePointer(copy)
  }

  private static func original(_ file: UnsafeMutablePointer<sqlite3_file>?) -> sqlite3_io_methods? {
    let known = originals.withLock { $0[UInt(bitPattern: file?.pointee.pMethods)] }
    guard let address = known ?? state.withLock({ $0.originals[UInt(bitPattern: file)] }) else { return nil }
    return UnsafePointer<sqlite3_io_methods>(bitPattern: address)?.pointee
  }

  private static func meet(_ operation: Operation, _ file: UnsafeMutablePointer<sqlite3_file>?) -> Fault? {
    state.withLock { state in
      guard let path = state.paths[UInt(bitPattern: file)] else { return nil }
      state.counts[path, default: [:]][operation, default: 0] += 1
      guard var fault = state.faults[path], fault.operation == operation else { return nil }
      fault.countdown -= 1
      state.faults[path] = fault
      if fault.countdown <= 0 { state.errorNumbers[path] = fault.errorNumber }
      return fault.countdown == 0 || (fault.lasts && fault.countdown < 0) ? fault : nil
    }
  }

  /// Lets operations on a file fail from now on; the path must have no links in it.
  ///
  /// - Parameter fault: What fails; `nil` ends it.
  static func set(_ fault: Fault?, at path: String) { state.withLock { $0.faults[path] = fault } }

  /// Gives a database and its log a disk of so many bytes; the path must have no links in it.
  static func setDisk(_ size: Int?, at path: String) { state.withLock { $0.disks[path] = size } }

  /// Whether the disk of a file has room for it when it ends there.
  private static func hasRoom(for end: Int, at path: String) -> Bool {
    let main = path.hasSuffix("-wal") ? String(path.dropLast(4)) : path
    guard let free = freeBytes(beside: main) else { return true }
    let growth = end - size(path)
    return growth <= 0 || growth <= free
  }

  /// The disk that a store asks: the one that ``setDisk(_:at:)`` has given its database, else the system's.
  static let disk = SQLiteDisk { freeBytes(beside: $0) ?? SQLiteDisk.system.freeBytes($0) }

  /// Returns what a database and its log leave free of the disk that they have for themselves; `nil` when they have none.
  private static func freeBytes(beside main: String) -> Int? {
    guard let disk = state.withLock({ $0.disks[main] }) else { return nil }
    return max(0, ["", "-wal", "-shm"].reduce(disk) { $0 - size(main + $1) })
  }

  private static func size(_ path: String) -> Int { ((try? FileManager.default.attributesOfItem(atPath: path)[.size]) as? Int) ?? 0 }

  /// Returns the number of operations of a kind on a file.
  static func count(_ operation: Operation, at path: String) -> Int { state.withLock { $0.counts[path]?[operation] ?? 0 } }

  private static func path(_ file: UnsafeMutablePointer<sqlite3_file>?) -> String? { state.withLock { $0.paths[UInt(bitPattern: file)] } }

  // MARK: The page cache

  private static let pageSize = 4_096

  /// Begins to keep account of what of a file is on the disk.
  static func follow(_ path: String) { state.withLock { $0.cached[path] = Cached() } }

  static func noteWrite(_ offset: Int, _ count: Int, at path: String) {
    guard count > 0 else { return }
    state.withLock { $0.cached[path]?.dirty.formUnion(offset / pageSize...(offset + count - 1) / pageSize) }
  }

  static func noteSync(fails: Bool, at path: String) {
    state.withLock { state in
      guard var cached = state.cached[path] else { return }
      if fails { cached.lost.formUnion(cached.dirty) } else { cached.lost.subtract(cached.dirty) }
      cached.dirty = []
      state.cached[path] = cached
    }
  }

  static func noteSize(_ size: Int, at path: String) {
    state.withLock { state in
      guard var cached = state.cached[path] else { return }
      cached.lost = cached.lost.filter { $0 * pageSize < size }
      state.cached[path] = cached
    }
  }

  /// A file as the disk has it after a power cut: zeros in the pages that a failed sync left behind.
  static func afterPowerCut(_ bytes: Data, at path: String) -> Data {
    var bytes = bytes
    for page in state.withLock({ $0.cached[path]?.lost ?? [] }) where page * pageSize < bytes.count {
      let range = page * pageSize..<min((page + 1) * pageSize, bytes.count)
      bytes.replaceSubrange(range, with: Data(count: range.count))
    }
    return bytes
  }
}
