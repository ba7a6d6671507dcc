package import Larder

/// A file system whose directory sync does nothing, for tests that prove that a crash test notices.
package struct DirectorySyncIgnoring: ForwardingFileSystem {
  package let base: any FileSystem

  package init(_ base: any FileSystem) { self.base = base }

  /// Does nothing: this is the defect.
  package func syncDirectory(_ path: String) {}
}
