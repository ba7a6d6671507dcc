import Foundation
import Larder
import Synchronization

/// The real file system, with a list of what was asked of it.
final class RecordingFileSystem: FileSystem {
  private let real = POSIXFileSystem()
  private let log = Mutex<[String]>([])

  /// The calls in order, each with the last component of its path.
  var steps: [String] { log.withLock { $0 } }

  fileprivate func note(_ call: String, _ path: String) {
    log.withLock { $0.append("\(call) \(URL(filePath: path).lastPathComponent)") }
  }

  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    note("open", path)
    guard let file = try real.open(path, writable: writable) else { return nil }
    return RecordingFile(file, self)
  }

  func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    note("create", path)
    return RecordingFile(try real.create(path), self)
  }

  func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    note("rename", newPath)
    try real.rename(path, to: newPath)
  }

  func remove(_ path: String) throws(RepositoryError) {
    note("remove", path)
    try real.remove(path)
  }

  func createDirectory(_ path: String) throws(RepositoryError) {
    note("createDirectory", path)
    try real.createDirectory(path)
  }

  func syncDirectory(_ path: String) throws(RepositoryError) {
    note("syncDirectory", path)
    try real.syncDirectory(path)
  }

  func entries(of directory: String) throws(RepositoryError) -> [String]? { try real.entries(of: directory) }
  func lockShared(_ path: String, waiting timeout: Duration) throws(RepositoryError) -> any HeldSharedLock {
    try real.lockShared(path, waiting: timeout)
  }

  func lock(_ path: String) throws(RepositoryError) -> any HeldLock { try real.lock(path) }
}

private final class RecordingFile: OpenFile {
  private let real: any OpenFile
  private let files: RecordingFileSystem
  var path: String { real.path }

  init(_ real: any OpenFile, _ files: RecordingFileSystem) {
    self.real = real
    self.files = files
  }

  func size() throws(RepositoryError) -> Int { try real.size() }
  func mode() throws(RepositoryError) -> UInt16 { try real.mode() }
  func setMode(_ mode: UInt16) throws(RepositoryError) { try real.setMode(mode) }

  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    files.note("read", path)
    return try real.read(at: offset, count: count)
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
    try real.write(bytes, at: offset)
    FaultyFiles.noteWrite(offset, bytes.count, at: path)
  }

  func sync() throws(RepositoryError) {
    files.note("sync", path)
    try real.sync()
    FaultyFiles.noteSync(fails: false, at: path)
  }

  func close() throws(RepositoryError) { try real.close() }
}
