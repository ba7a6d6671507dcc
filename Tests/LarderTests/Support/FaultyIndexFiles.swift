import LarderTesting
import Synchronization
import TestSupport

@testable import Larder

/// Simulated files of which changes of the index file can fail.
final class FaultyIndexFiles: ForwardingFileSystem {
  let base: any FileSystem
  private let plan = Mutex((count: 0, failing: 0..<0))

  init(_ base: any FileSystem) { self.base = base }

  /// Lets changes fail by their numbers, counted from now on and from 1.
  func fail(at failing: Range<Int>) { plan.withLock { $0 = (0, failing) } }

  func check(_ path: String) throws(RepositoryError) {
    guard path.hasSuffix("-index") || path.hasSuffix("-index-tmp") else { return }
    let fails = plan.withLock { plan in
      plan.count += 1
      return plan.failing.contains(plan.count)
    }
    if fails { throw RepositoryError(.full, "no room for the index", file: path) }
  }

  func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? {
    try base.open(path, writable: writable).map { File(base: $0, self) }
  }
  func create(_ path: String) throws(RepositoryError) -> any OpenFile {
    try check(path)
    return File(base: try base.create(path), self)
  }
  func rename(_ path: String, to newPath: String) throws(RepositoryError) {
    try check(newPath)
    try base.rename(path, to: newPath)
  }

  private final class File: ForwardingFile {
    let base: any OpenFile
    private let files: FaultyIndexFiles

    init(base: any OpenFile, _ files: FaultyIndexFiles) { (self.base, self.files) = (base, files) }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(RepositoryError) {
      do throws(RepositoryError) { try files.check(path) } catch {
        try base.write(UnsafeRawBufferPointer(rebasing: bytes.prefix(bytes.count / 2)), at: offset)
        throw error
      }
      try base.write(bytes, at: offset)
    }
  }
}
