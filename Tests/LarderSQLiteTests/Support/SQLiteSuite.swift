import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderSQLite

/// A suite whose tests have a store of their own, with SQLite's file operations under the control of ``FaultyFiles``.
protocol SQLiteSuite {
  var directory: TemporaryDirectory { get }
}

extension SQLiteSuite {
  static func makeDirectory() throws -> TemporaryDirectory {
    try #require(FaultyFiles.isInstalled)
    return try TemporaryDirectory()
  }

  var url: URL { directory.file("spots.sqlite") }
  /// The path of the database as ``FaultyFiles`` names it.
  var main: String { url.path }
  /// The path of the write-ahead log.
  var log: String { main + "-wal" }

  /// Leaves the store that a killed process leaves after some commits: without a lock, and without the index of its log.
  ///
  /// - Parameter count: The bytes that are cut from the end of the log.
  func makeUnclosedStore(_ commits: UInt64 = 3, cutting count: Int = 0) throws {
    let backend = SQLiteBackend(file: url)
    _ = try backend.openAll()
    for number in 1...commits { try backend.commit([record("spot-\(number)", "\"\(number)\"", at: number)], at: number) }
    var files = try directory.contents().filter { !$0.key.hasSuffix("-lock") && !$0.key.hasSuffix("-shm") }
    try backend.close()
    files["spots.sqlite-wal"]?.removeLast(count)
    try directory.replace(with: files)
  }
}
