package import Foundation
package import Larder

/// A file system that passes every call on to another one, so that a test double declares only the calls that it changes.
package protocol ForwardingFileSystem: FileSystem {
  /// The file system behind this one.
  var base: any FileSystem { get }
}

extension ForwardingFileSystem {
  package func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? { try base.open(path, writable: writable) }
  package func status(of path: String) throws(RepositoryError) -> FileStatus? { try base.status(of: path) }
  package func create(_ path: String) throws(RepositoryError) -> any OpenFile { try base.create(path) }
  package func rename(_ path: String, to newPath: String) throws(RepositoryError) { try base.rename(path, to: newPath) }
  package func remove(_ path: String) throws(RepositoryError) { try base.remove(path) }
  package func createDirectory(_ path: String) throws(RepositoryError) { try base.createDirectory(path) }
  package func syncDirectory(_ path: String) throws(RepositoryError) { try base.syncDirectory(path) }
  package func entries(of directory: String) throws(RepositoryError) -> [String]? { try base.entries(of: directory) }
  package func lock(_ path: String) throws(RepositoryError) -> any HeldLock { try base.lock(path) }
  package func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock {
    try base.lockShared(path, waiting: timeout)
  }
}

/// An open file that passes every call on to another one.
package protocol ForwardingFile: OpenFile {
  /// The file behind this one.
  var base: any OpenFile { get }
}

extension ForwardingFile {
  package var path: String { base.path }
  package func status() throws(RepositoryError) -> FileStatus { try base.status() }
  package func lock() throws(RepositoryError) { try base.lock() }
  package func setOwner(_ owner: FileOwner) throws(RepositoryError) { try base.setOwner(owner) }
  package func copyAttributes(of file: any OpenFile) throws(RepositoryError) {
    try base.copyAttributes(of: (file as? any ForwardingFile)?.base ?? file)
  }
  package func size() throws(RepositoryError) -> Int { try base.size() }
  package func mode() throws(RepositoryError) -> UInt16 { try base.mode() }
  package func setMode(_ mode: UInt16) throws(RepositoryError) { try base.setMode(mode) }
  package func read(at offset: Int, count: Int) throws(RepositoryError) -> Data { try base.read(at: offset, count: count) }
  package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) { try base.write(bytes, at: offset) }
  package func cut(to size: Int) throws(RepositoryError) { try base.cut(to: size) }
  package func sync() throws(RepositoryError) { try base.sync() }
  package func order() throws(RepositoryError) { try base.order() }
  package func close() throws(RepositoryError) { try base.close() }
}
