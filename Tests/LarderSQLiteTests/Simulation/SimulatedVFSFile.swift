import CSQLite
import Foundation
import Larder
import LarderTesting

/// SQLite's structure for an open file of a mirrored directory, and its functions.
///
/// SQLite allocates it. First come the functions, then a reference to the ``SimulatedVFS/Opened`` file, then the structure of the next VFS.
enum SimulatedVFSFile {
  /// The bytes before the next VFS's structure.
  static let headerSize = 16

  /// Returns the structure of the next VFS.
  static func real(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<sqlite3_file> {
    (UnsafeMutableRawPointer(file) + headerSize).assumingMemoryBound(to: sqlite3_file.self)
  }

  private static func reference(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<UnsafeMutableRawPointer> {
    (UnsafeMutableRawPointer(file) + 8).assumingMemoryBound(to: UnsafeMutableRawPointer.self)
  }

  private static func opened(_ file: UnsafeMutablePointer<sqlite3_file>) -> SimulatedVFS.Opened {
    Unmanaged<SimulatedVFS.Opened>.fromOpaque(reference(file).pointee).takeUnretainedValue()
  }

  /// Completes the structure of a file that was opened.
  static func begin(_ file: UnsafeMutablePointer<sqlite3_file>, _ opened: SimulatedVFS.Opened) {
    reference(file).initialize(to: Unmanaged.passRetained(opened).toOpaque())
    file.pointee.pMethods = UnsafePointer(methods)
  }

  /// Calls a body with the open file, and the next VFS's structure and functions.
  private static func with(
    _ file: UnsafeMutablePointer<sqlite3_file>?,
    _ body: (SimulatedVFS.Opened, UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods) -> Int32
  ) -> Int32 {
    guard let file else { return SQLITE_IOERR }
    let real = real(file)
    guard let methods = real.pointee.pMethods else { return SQLITE_IOERR }
    return body(opened(file), real, methods.pointee)
  }

  /// Makes a call of the simulated disk, and the real one if that succeeds.
  ///
  /// - Parameters:
  ///   - repeats: Whether it is made again when a signal interrupts it.
  ///   - result: Returns SQLite's result for an error number.
  ///   - call: The call of the simulated disk.
  private static func attempt(
    _ opened: SimulatedVFS.Opened, repeating repeats: Bool = true, _ result: (Int32) -> Int32, _ call: () throws(RepositoryError) -> Void
  ) -> Int32 {
    guard let number = SimulatedVFS.attempt(repeating: repeats, call) else { return SQLITE_OK }
    opened.lastErrorNumber = number
    return result(number)
  }

  /// Makes a call that the simulated disk knows nothing of, unless it fails; a lock that cannot be given back is given back all the same.
  private static func calling(
    _ call: SQLiteCallFaults.Call, _ file: UnsafeMutablePointer<sqlite3_file>?,
    _ body: (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods) -> Int32
  ) -> Int32 {
    with(file) { opened, real, methods in
      guard let result = opened.mirror.calls.meet(call) else { return body(real, methods) }
      if [.unlock, .unlockIndex].contains(call) { _ = body(real, methods) }
      return result
    }
  }

  // Written once, before any file is opened with it.
  private nonisolated(unsafe) static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    methods.initialize(to: sqlite3_io_methods())
    // Version 2 has the index of the log, and no memory mapping of the database.
    methods.pointee.iVersion = 2
    methods.pointee.xClose = { file in
      guard let file else { return SQLITE_OK }
      let opened = Unmanaged<SimulatedVFS.Opened>.fromOpaque(reference(file).pointee).takeRetainedValue()
      let real = real(file)
      let result = real.pointee.pMethods?.pointee.xClose(real) ?? SQLITE_OK
      if opened.deletesOnClose { _ = SimulatedVFS.attempt { () throws(RepositoryError) in try opened.mirror.model.remove(opened.path) } }
      file.pointee.pMethods = nil
      return result
    }
    methods.pointee.xRead = { file, bytes, count, offset in
      with(file) { opened, real, methods in
        var simulated = Data()
        let failure = attempt(opened) {
          $0 == EIO || $0 == ENXIO || $0 == ERANGE ? SQLITE_IOERR_CORRUPTFS : SQLITE_IOERR_READ
        } _: {
          () throws(RepositoryError) in
          simulated = try opened.model.read(at: Int(offset), count: Int(count))
        }
        if failure != SQLITE_OK { return failure }
        if let result = opened.mirror.calls.meet(.read), let bytes {
          // Half of what is there, and zeros for the rest.
          memset(bytes, 0, Int(count))
          simulated.prefix(simulated.count / 2).withUnsafeBytes {
            UnsafeMutableRawPointer(bytes).copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(bytes), byteCount: $0.count)
          }
          return result
        }
        let result = methods.xRead(real, bytes, count, offset)
        if result == SQLITE_OK || result == SQLITE_IOERR_SHORT_READ, let bytes, Data(bytes: bytes, count: simulated.count) != simulated {
          opened.mirror.note("\(opened.path): other bytes at \(offset)")
        }
        return result
      }
    }
    methods.pointee.xWrite = { file, bytes, count, offset in
      with(file) { opened, real, methods in
        let buffer = UnsafeRawBufferPointer(start: bytes, count: Int(count))
        let failure = attempt(opened) {
          $0 == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE
        } _: {
          () throws(RepositoryError) in
          try opened.model.write(buffer, at: Int(offset))
        }
        if failure == SQLITE_OK { return methods.xWrite(real, bytes, count, offset) }
        // A fault may have left the beginning of the bytes.
        if !opened.mirror.model.isDown, let left = opened.mirror.model.contents(of: opened.path)?.dropFirst(Int(offset)).prefix(Int(count))
        {
          _ = Data(left).withUnsafeBytes { methods.xWrite(real, $0.baseAddress, Int32($0.count), offset) }
        }
        return failure
      }
    }
    methods.pointee.xTruncate = { file, size in
      with(file) { opened, real, methods in
        let failure = attempt(opened) { _ in
          SQLITE_IOERR_TRUNCATE
        } _: { () throws(RepositoryError) in
          try opened.model.cut(to: Int(size))
        }
        return failure == SQLITE_OK ? methods.xTruncate(real, size) : failure
      }
    }
    methods.pointee.xSync = { file, _ in
      with(file) { opened, _, _ in
        let failure = attempt(opened, repeating: false) { _ in
          SQLITE_IOERR_FSYNC
        } _: { () throws(RepositoryError) in
          try opened.mirror.sync(opened.model)
        }
        if failure == SQLITE_OK, opened.syncsDirectory {
          opened.syncsDirectory = false
          _ = SimulatedVFS.attempt { () throws(RepositoryError) in try opened.mirror.syncDirectory() }
        }
        return failure
      }
    }
    methods.pointee.xFileSize = { file, size in
      with(file) { opened, real, methods in
        let failure = attempt(opened) { _ in
          SQLITE_IOERR_FSTAT
        } _: { () throws(RepositoryError) in
          _ = try opened.model.size()
        }
        return failure == SQLITE_OK ? methods.xFileSize(real, size) : failure
      }
    }
    methods.pointee.xFileControl = { file, operation, argument in
      with(file) { opened, real, methods in
        if operation == SQLITE_FCNTL_LAST_ERRNO, opened.lastErrorNumber != 0 {
          argument?.storeBytes(of: opened.lastErrorNumber, as: Int32.self)
          return SQLITE_OK
        }
        return methods.xFileControl(real, operation, argument)
      }
    }
    // Locks and the index of the log are the real ones, unless a fault is planned.
    methods.pointee.xLock = { file, level in calling(.lock, file) { real, methods in methods.xLock(real, level) } }
    methods.pointee.xUnlock = { file, level in calling(.unlock, file) { real, methods in methods.xUnlock(real, level) } }
    methods.pointee.xCheckReservedLock = { file, found in
      calling(.checkReservedLock, file) { real, methods in methods.xCheckReservedLock(real, found) }
    }
    methods.pointee.xSectorSize = { file in with(file) { _, real, methods in methods.xSectorSize(real) } }
    methods.pointee.xDeviceCharacteristics = { file in with(file) { _, real, methods in methods.xDeviceCharacteristics(real) } }
    methods.pointee.xShmMap = { file, region, size, extends, address in
      calling(.mapIndex, file) { real, methods in methods.xShmMap(real, region, size, extends, address) }
    }
    methods.pointee.xShmLock = { file, offset, count, flags in
      let call = flags & SQLITE_SHM_UNLOCK != 0 ? SQLiteCallFaults.Call.unlockIndex : .lockIndex
      return calling(call, file) { real, methods in methods.xShmLock(real, offset, count, flags) }
    }
    methods.pointee.xShmBarrier = { file in
      _ = with(file) { _, real, methods in
        methods.xShmBarrier(real); return SQLITE_OK
      }
    }
    methods.pointee.xShmUnmap = { file, deletes in with(file) { _, real, methods in methods.xShmUnmap(real, deletes) } }
    return methods
  }()
}
