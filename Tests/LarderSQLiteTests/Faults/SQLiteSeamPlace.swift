import Foundation
import Larder
import TestSupport

@testable import LarderSQLite

/// The files of a trial: a directory of its own in memory, with directories in it.
struct SQLiteSeamPlace {
  let directory: TemporaryDirectory

  init(_ files: [String: Data] = [:]) throws {
    directory = try TemporaryDirectory(inMemory: true)
    try place(files)
  }

  var store: URL { directory.file(SQLiteSeamScenario.store) }
  var copy: URL { directory.file(SQLiteSeamScenario.copy) }

  /// Puts files in place of those that are there.
  func place(_ files: [String: Data]) throws {
    for name in try directory.names { try FileManager.default.removeItem(at: directory.file(name)) }
    for (path, bytes) in files {
      let file = directory.file(path)
      try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try bytes.write(to: file)
    }
  }

  /// Returns the files by their paths, as a killed process leaves them: without locks, and without indexes of logs.
  func files() throws -> [String: Data] {
    var files: [String: Data] = [:]
    for folder in try directory.names {
      for name in try FileManager.default.contentsOfDirectory(atPath: directory.pathOfFile(folder)) {
        if name.hasSuffix(".sqlite-lock") || name.hasSuffix(".sqlite-shm") { continue }
        files[folder + "/" + name] = try Data(contentsOf: directory.file(folder + "/" + name))
      }
    }
    return files
  }
}
