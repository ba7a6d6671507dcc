import Foundation
import Larder
import Synchronization
import TestSupport

/// The real file system, with a list of the calls.
final class RecordingFileSystem: ForwardingFileSystem {
  let base: any FileSystem = POSIXFileSystem()
  private let log = Mutex<[String]>([])

  /// The calls in order, each with the last component of its path.
  var steps: [String] { log.withLock { $0 } }

  fileprivate func note(_ call: String, _ path: String) {
    log.withLock { $0.append("\(call) \(URL(filePath: path).lastPathComponent)") }
  }

  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    note("open", path)
    guard let file = try base.open(path, writable: writable) else { return nil }
    return RecordingFile(file, self)
  }

  func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    note("create", path)
    return RecordingFile(try base.create(path), self)
  }

  func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    note("rename", newPath)
    try base.rename(path, to: newPath)
  }

  func remove(_ path: String) throws(RepositoryError) {
    note("remove", path)
    try base.remove(path)
  }

  func createDirectory(_ path: String) throws(RepositoryError) {
    note("createDirectory", path)
    try base.createDirectory(path)
  }

  func syncDirectory(_ path: String) throws(RepositoryError) {
    note("syncDirectory", path)
    try base.syncDirectory(path)
  }
}

private final class RecordingFile: ForwardingFile {
  let base: any OpenFile
  private let files: RecordingFileSystem

  init(_ base: any OpenFile, _ files: RecordingFileSystem) {
    self.base = base
    self.files = files
  }

  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    files.note("read", path)
    return try base.read(at: offset, count: count)
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
    try base.write(bytes, at: offset)
    FaultyFiles.noteWrite(offset, bytes.count, at: path)
  }

  func sync() throws(RepositoryError) {
    files.note("sync", path)
    try base.sync()
    FaultyFiles.noteSync(fails: false, at: path)
  }
}
