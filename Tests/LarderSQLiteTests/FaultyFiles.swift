import CSQLite
import Foundation
import Synchronization

/// Makes SQLite's own file operations fail, once a test says where: a VFS that stands before the system's.
///
/// It becomes the default of this process, and passes everything on for files that no test has named.
enum FaultyFiles {
  enum Operation: Hashable { case write, sync }

  /// A failure of the n-th operation from now on a file.
  struct Fault {
    var operation: Operation
    var countdown: Int
    var result: Int32
    /// Whether later operations fail too.
    var lasts = false
    /// Whether what is to be written reaches the file all the same.
    var happens = false
  }

  private struct State {
    var faults: [String: Fault] = [:]
    /// The files that are open, by the address of SQLite's structure.
    var paths: [UInt: String] = [:]
    var counts: [String: [Operation: Int]] = [:]
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
        FaultyFiles.state.withLock { $0.paths[UInt(bitPattern: file)] = String(cString: name) }
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
      if let fault, !fault.happens { return fault.result }
      let result = original?(file, bytes, count, offset) ?? SQLITE_IOERR
      return fault?.result ?? result
    }
    copy.pointee.xSync = { file, flags in
      let original = FaultyFiles.original(file)?.xSync
      if let fault = FaultyFiles.meet(.sync, file) { return fault.result }
      return original?(file, flags) ?? SQLITE_IOERR
    }
    originals.withLock { $0[UInt(bitPattern: copy)] = UInt(bitPattern: methods) }
    return UnsafePointer(copy)
  }

  private static func original(_ file: UnsafeMutablePointer<sqlite3_file>?) -> sqlite3_io_methods? {
    guard let address = originals.withLock({ $0[UInt(bitPattern: file?.pointee.pMethods)] }) else { return nil }
    return UnsafePointer<sqlite3_io_methods>(bitPattern: address)?.pointee
  }

  private static func meet(_ operation: Operation, _ file: UnsafeMutablePointer<sqlite3_file>?) -> Fault? {
    state.withLock { state in
      guard let path = state.paths[UInt(bitPattern: file)] else { return nil }
      state.counts[path, default: [:]][operation, default: 0] += 1
      guard var fault = state.faults[path], fault.operation == operation else { return nil }
      fault.countdown -= 1
      state.faults[path] = fault
      return fault.countdown == 0 || (fault.lasts && fault.countdown < 0) ? fault : nil
    }
  }

  /// Lets operations on a file fail from now on; the path must have no links in it.
  ///
  /// - Parameter fault: What fails; `nil` ends it.
  static func set(_ fault: Fault?, at path: String) { state.withLock { $0.faults[path] = fault } }

  /// How often something was done to a file.
  static func count(_ operation: Operation, at path: String) -> Int { state.withLock { $0.counts[path]?[operation] ?? 0 } }
}
