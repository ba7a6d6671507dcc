internal import Foundation
package import Larder

/// A file system that has only what one must have: for all else the defaults of the seam are used.
package struct PlainFileSystem: FileSystem {
  private let base: any FileSystem

  package init(base: any FileSystem) { self.base = base }

  package func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    try base.open(path, writable: writable).map(PlainFile.init)
  }
  package func create(_ path: String) throws(RepositoryError) -> any OpenFile { PlainFile(try base.create(path)) }
  package func rename(_ path: String, to newPath: String) throws(RepositoryError) { try base.rename(path, to: newPath) }
  package func remove(_ path: String) throws(RepositoryError) { try base.remove(path) }
  package func createDirectory(_ path: String) throws(RepositoryError) { try base.createDirectory(path) }
  package func syncDirectory(_ path: String) throws(RepositoryError) { try base.syncDirectory(path) }
  package func entries(of directory: String) throws(RepositoryError) -> [String]? { try base.entries(of: directory) }
  package func lock(_ path: String) throws(RepositoryError) -> any HeldLock { try base.lock(path) }
}

/// An open file of a ``PlainFileSystem``.
private final class PlainFile: OpenFile {
  private let base: any OpenFile

  init(_ base: any OpenFile) { self.base = base }

  var path: String { base.path }
  func status() throws(RepositoryError) -> FileStatus {
    let status = try base.status()
    return FileStatus(identity: nil, size: status.size, mode: status.mode)
  }
  func size() throws(RepositoryError) -> Int { try base.size() }
  func mode() throws(RepositoryError) -> UInt16 { try base.mode() }
  func setMode(_ mode: UInt16) throws(RepositoryError) { try base.setMode(mode) }
  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data { try base.read(at: offset, count: count) }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) { try base.write(bytes, at: offset) }
  func sync() throws(RepositoryError) { try base.sync() }
  func close() throws(RepositoryError) { try base.close() }
}
