import Foundation
import Larder

/// A disk that is full at some size: a file system around another one, in which the files of one directory have that many blocks together.
final class SmallDisk: FileSystem {
  static let blockSize = 4096
  private let inner: any FileSystem
  private let directory: String
  private let blocks: Int

  init(_ inner: any FileSystem, directory: String, blocks: Int) {
    self.inner = inner
    self.directory = directory
    self.blocks = blocks
  }

  /// How many blocks are free.
  var free: Int {
    get throws(RepositoryError) {
      var used = 0
      for name in try inner.entries(of: directory) ?? [] { used += Self.blocks(try inner.status(of: directory + "/" + name)?.size ?? 0) }
      return blocks - used
    }
  }

  static func blocks(_ size: Int) -> Int { (size + blockSize - 1) / blockSize }

  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    try inner.open(path, writable: writable).map { SmallDiskFile($0, self) }
  }
  func status(of path: String) throws(RepositoryError) -> FileStatus? { try inner.status(of: path) }
  func create(_ path: String) throws(RepositoryError) -> any OpenFile { SmallDiskFile(try inner.create(path), self) }
  func rename(_ path: String, to newPath: String) throws(RepositoryError) { try inner.rename(path, to: newPath) }
  func remove(_ path: String) throws(RepositoryError) { try inner.remove(path) }
  func createDirectory(_ path: String) throws(RepositoryError) { try inner.createDirectory(path) }
  func syncDirectory(_ path: String) throws(RepositoryError) { try inner.syncDirectory(path) }
  func entries(of directory: String) throws(RepositoryError) -> [String]? { try inner.entries(of: directory) }
  func lock(_ path: String) throws(RepositoryError) -> any HeldLock { try inner.lock(path) }
}

private final class SmallDiskFile: OpenFile {
  private let inner: any OpenFile
  private let disk: SmallDisk

  init(_ inner: any OpenFile, _ disk: SmallDisk) { (self.inner, self.disk) = (inner, disk) }

  var path: String { inner.path }
  func status() throws(RepositoryError) -> FileStatus { try inner.status() }
  func lock() throws(RepositoryError) { try inner.lock() }
  func size() throws(RepositoryError) -> Int { try inner.size() }
  func mode() throws(RepositoryError) -> UInt16 { try inner.mode() }
  func setMode(_ mode: UInt16) throws(RepositoryError) { try inner.setMode(mode) }
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data { try inner.read(at: offset, count: count) }
  func cut(to size: Int) throws(RepositoryError) { try inner.cut(to: size) }
  func sync() throws(RepositoryError) { try inner.sync() }
  func close() throws(RepositoryError) { try inner.close() }

  /// Writes what has room, as a real disk does, and fails if that is not all.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
    let room = (SmallDisk.blocks(try inner.size()) + max(try disk.free, 0)) * SmallDisk.blockSize
    guard offset + bytes.count > room else { return try inner.write(bytes, at: offset) }
    try inner.write(UnsafeRawBufferPointer(rebasing: bytes.prefix(max(room - offset, 0))), at: offset)
    throw RepositoryError(.full, "no space", file: path, underlying: SystemCallError(call: "pwrite", errorNumber: ENOSPC))
  }
}
