internal import Foundation
internal import Larder
internal import Synchronization

/// An open file of a simulated file system; it outlives its name, and fails once the machine is down.
final class SimulatedFile: OpenFile {
  let path: String
  private let number: Int
  private let isWritable: Bool
  private let system: SimulatedFileSystem
  private let isClosed = Mutex(false)
  private let isLocked = Mutex(false)

  init(path: String, number: Int, isWritable: Bool, system: SimulatedFileSystem) {
    self.path = path
    self.number = number
    self.isWritable = isWritable
    self.system = system
  }

  deinit { close() }

  func status() throws(RepositoryError) -> FileStatus {
    try checkOpen("fstat")
    return try system.status(of: number, path)
  }

  func lock() throws(RepositoryError) {
    try checkOpen("flock")
    guard try system.lock(number, path) else {
      throw RepositoryError(.alreadyOpen, "this process has the file open, maybe by another name", file: path)
    }
    isLocked.withLock { $0 = true }
  }

  func size() throws(RepositoryError) -> Int {
    try checkOpen("fstat")
    return try system.reading("fstat", path) { [number] (disk) in disk.files[number]?.current.bytes.count ?? 0 }
  }

  func mode() throws(RepositoryError) -> UInt16 {
    try checkOpen("fstat")
    return try system.reading("fstat", path) { [number] (disk) in disk.files[number]?.current.mode ?? 0 }
  }

  func setMode(_ mode: UInt16) throws(RepositoryError) {
    try checkOpen("fchmod")
    try system.changing("fchmod", path) { [number] (disk) in disk.setMode(mode, of: number) }
  }

  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    try checkOpen("pread")
    if offset < 0 { throw .simulated("pread", EINVAL, path) }
    return try system.reading("pread", path) { [number] (disk) in
      guard let bytes = disk.files[number]?.current.bytes, offset < bytes.count, count > 0 else { return Data() }
      return bytes.withUnsafeBytes { bytes in
        bytes.baseAddress.map { Data(bytes: $0 + offset, count: min(count, bytes.count - offset)) } ?? Data()
      }
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
    try checkOpen("pwrite")
    if !isWritable { throw .simulated("pwrite", EBADF, path) }
    if offset < 0 { throw .simulated("pwrite", EINVAL, path) }
    try system.write(bytes, at: offset, to: number, path)
  }

  func cut(to size: Int) throws(RepositoryError) {
    try checkOpen("ftruncate")
    if !isWritable || size < 0 { throw .simulated("ftruncate", EINVAL, path) }
    try system.changing("ftruncate", path) { [number] (disk) in disk.cut(number, to: size) }
  }

  func sync() throws(RepositoryError) {
    try checkOpen("fsync")
    try system.changing("fsync", path, failing: { [number] disk, _ in disk.sync(number, fails: true) }) { [number] (disk) in
      disk.sync(number)
    }
  }

  func close() {
    isClosed.withLock { $0 = true }
    let wasLocked = isLocked.withLock { isLocked in
      defer { isLocked = false }
      return isLocked
    }
    if wasLocked { system.unlock(number) }
  }

  private func checkOpen(_ call: String) throws(RepositoryError) {
    if isClosed.withLock({ $0 }) { throw .simulated(call, EBADF, path) }
  }
}

/// A lock of a simulated file system.
final class SimulatedLock: HeldLock {
  private let path: String
  private let system: Mutex<SimulatedFileSystem?>

  init(path: String, system: SimulatedFileSystem) {
    self.path = path
    self.system = Mutex(system)
  }

  deinit { release() }

  func release() { system.withLock({ $0.take() })?.unlock(path) }
}
