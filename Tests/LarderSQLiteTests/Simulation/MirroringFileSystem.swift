import Foundation
import Larder
import LarderTesting
import TestSupport

/// The seam's calls: each goes to the simulated disk, and if that allows it to the real files.
struct MirroringFileSystem: ForwardingFileSystem {
  let mirror: MirroredDirectory
  var base: any FileSystem { POSIXFileSystem() }

  private func modelPath(_ path: String) throws(RepositoryError) -> String {
    if path == mirror.path { return "/" }
    guard let path = mirror.modelPath(path) else { throw RepositoryError(.unsupported, "expected a mirrored file", file: path) }
    return path
  }

  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    let model = try mirror.model.open(modelPath(path), writable: writable)
    guard let model, let file = try base.open(path, writable: writable) else { return nil }
    return MirroredFile(file, model, mirror)
  }

  func status(of path: String) throws(RepositoryError) -> FileStatus? {
    _ = try mirror.model.status(of: modelPath(path))
    return try base.status(of: path)
  }

  func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    let model = try mirror.model.create(modelPath(path))
    return MirroredFile(try base.create(path), model, mirror)
  }

  func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    try mirror.model.rename(modelPath(path), to: modelPath(newPath))
    try base.rename(path, to: newPath)
  }

  func remove(_ path: String) throws(RepositoryError) {
    try mirror.model.remove(modelPath(path))
    try base.remove(path)
  }

  func createDirectory(_ path: String) throws(RepositoryError) { try mirror.model.createDirectory(modelPath(path)) }

  func syncDirectory(_ path: String) throws(RepositoryError) {
    // There is one directory.
    _ = try modelPath(path)
    try mirror.syncDirectory()
  }

  func lock(_ path: String) throws(RepositoryError) -> any HeldLock {
    // The real lock excludes others; the simulated one is a call that can fail.
    try mirror.model.lock(modelPath(path)).release()
    return try base.lock(path)
  }

  func entries(of directory: String) throws(RepositoryError) -> [String]? {
    _ = try mirror.model.entries(of: modelPath(directory))
    return try base.entries(of: directory)
  }
}

/// An open file of the seam.
private final class MirroredFile: ForwardingFile {
  let base: any OpenFile
  private let model: any OpenFile
  private let mirror: MirroredDirectory

  init(_ base: any OpenFile, _ model: any OpenFile, _ mirror: MirroredDirectory) {
    self.base = base
    self.model = model
    self.mirror = mirror
  }

  func size() throws(RepositoryError) -> Int {
    _ = try model.size()
    return try base.size()
  }

  func setMode(_ mode: UInt16) throws(RepositoryError) {
    try model.setMode(mode)
    try base.setMode(mode)
  }

  func read(at offset: Int, count: Int) throws(RepositoryError) -> Data {
    _ = try model.read(at: offset, count: count)
    return try base.read(at: offset, count: count)
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
    do throws(RepositoryError) {
      try model.write(bytes, at: offset)
    } catch {
      if !mirror.model.isDown { try mirror.copyPart(of: base, at: offset, count: bytes.count) }
      throw error
    }
    try base.write(bytes, at: offset)
  }

  func cut(to size: Int) throws(RepositoryError) {
    try model.cut(to: size)
    try base.cut(to: size)
  }

  func sync() throws(RepositoryError) { try mirror.sync(model) }
}
