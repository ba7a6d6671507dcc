import Foundation
import Larder
import LarderToolKit
import Synchronization
import Testing

@_spi(Inspection) @testable import LarderSQLite

/// The copy of a SQLite store that is written meanwhile.
@Suite struct RepeatedCopyTests {
  /// A file system that runs a body before the first rename.
  private final class InterruptingFileSystem: FileSystem {
    private let files = POSIXFileSystem()
    private let body: @Sendable () -> Void
    private let hasRun = Atomic(false)

    init(beforeFirstRename body: @escaping @Sendable () -> Void) { self.body = body }

    func open(_ path: String, writable: Bool) throws(RepositoryError) -> (any OpenFile)? { try files.open(path, writable: writable) }
    func create(_ path: String) throws(RepositoryError) -> any OpenFile { try files.create(path) }
    func remove(_ path: String) throws(RepositoryError) { try files.remove(path) }
    func createDirectory(_ path: String) throws(RepositoryError) { try files.createDirectory(path) }
    func syncDirectory(_ path: String) throws(RepositoryError) { try files.syncDirectory(path) }
    func entries(of directory: String) throws(RepositoryError) -> [String]? { try files.entries(of: directory) }
    func lock(_ path: String) throws(RepositoryError) -> any HeldLock { try files.lock(path) }
    func rename(_ path: String, to newPath: String) throws(RepositoryError) {
      if !hasRun.exchange(true, ordering: .acquiringAndReleasing) { body() }
      try files.rename(path, to: newPath)
    }
  }

  @Test func `a copy that a writer has come into is made again`() async throws {
    let workspace = try Workspace()
    let store = try await workspace.store(.sqliteFile)
    let files = InterruptingFileSystem {
      // A writer that comes, folds its log and goes is known by the state of the file alone.
      do {
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: store)
      } catch {
        Issue.record(error)
      }
    }
    let copy = workspace.url("copy.sqlite")
    try SQLiteInspection(file: URL(filePath: store), fileSystem: files).backup(to: copy)
    #expect(try await larder("diff", store, copy.path).code == 0)
    // A file that was there before is none of its copies.
    #expect(throws: RepositoryError.self) { try SQLiteInspection(file: URL(filePath: store)).backup(to: copy) }
  }
}
