import Foundation
import Larder
import LarderTesting
import Synchronization
import TestSupport
import Testing

@testable import LarderSQLite

/// A directory of real files whose every change is made on a simulated disk first, which decides whether it happens.
///
/// SQLite cannot do without real files: it locks them and maps the index of its log. Their bytes, sizes and names are those of the simulated
/// disk at every moment, and what would survive a crash is what that disk says. Changes come through ``SimulatedVFS`` and ``fileSystem``.
/// The index of the log (`-shm`) is not mirrored: SQLite makes it anew after a crash.
final class MirroredDirectory: Sendable {
  /// A promise of the disk that it does not keep, for tests that prove that this is noticed.
  enum Defect: CaseIterable {
    /// Syncs of the write-ahead log do nothing.
    case ignoresSyncsOfTheLog
    /// Syncs of the database do nothing.
    case ignoresSyncsOfTheDatabase
    /// Syncs of the directory do nothing.
    case ignoresSyncsOfTheDirectory
  }

  let model: SimulatedFileSystem
  /// The faults of calls that the simulated disk knows nothing of.
  let calls = SQLiteCallFaults()
  private let defect: Defect?
  private let directory: TemporaryDirectory
  /// The differences between the real files and the simulated ones, which are defects of the mirror.
  private let differences = Mutex<[String]>([])

  /// Makes the real files of a simulated disk, from what programs see there.
  init(_ model: SimulatedFileSystem, defect: Defect? = nil) throws {
    try #require(SimulatedVFS.isInstalled)
    self.model = model
    self.defect = defect
    directory = try TemporaryDirectory(inMemory: true)
    for path in model.paths {
      let file = directory.path + path
      try (model.contents(of: path) ?? Data()).write(to: URL(filePath: file))
      try POSIXFileSystem().open(file, writable: true)?.setMode(model.mode(of: path) ?? 0o600)
    }
    SimulatedVFS.add(self)
  }

  deinit { SimulatedVFS.remove(directory.path) }

  /// The path of the real directory.
  var path: String { directory.path }

  /// Returns the URL of a real file.
  func file(_ name: String) -> URL { directory.file(name) }

  /// The names of the real files.
  var names: [String] { get throws { try directory.names } }

  /// Returns the path on the simulated disk; `nil` for a file of another directory.
  func modelPath(_ path: String) -> String? { path.hasPrefix(self.path + "/") ? String(path.dropFirst(self.path.count)) : nil }

  /// Syncs a file of the simulated disk, unless a defect keeps it from that.
  func sync(_ file: any OpenFile) throws(RepositoryError) {
    if defect != (file.path.hasSuffix("-wal") ? .ignoresSyncsOfTheLog : .ignoresSyncsOfTheDatabase) { try file.sync() }
  }

  /// Syncs the directory of the simulated disk, unless a defect keeps it from that.
  func syncDirectory() throws(RepositoryError) {
    if defect != .ignoresSyncsOfTheDirectory { try model.syncDirectory("/") }
  }

  /// The file system of this directory.
  var fileSystem: any FileSystem { MirroringFileSystem(mirror: self) }

  /// Makes a backend of a store in this directory, on a disk that is never full.
  func backend(_ name: String = "spots.sqlite") -> SQLiteBackend {
    SQLiteBackend(file: file(name), fileSystem: fileSystem, disk: SQLiteDisk { _ in nil })
  }

  /// Brings part of a real file to what the simulated one holds there: a failed write may have left some of its bytes.
  func copyPart(of file: any OpenFile, at offset: Int, count: Int) throws(RepositoryError) {
    guard let path = modelPath(file.path), let bytes = model.contents(of: path)?.dropFirst(offset).prefix(count), !bytes.isEmpty else {
      return
    }
    var failure: RepositoryError?
    Data(bytes).withUnsafeBytes { bytes in
      do throws(RepositoryError) { try file.write(bytes, at: offset) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  func note(_ difference: String) { differences.withLock { $0.append(difference) } }

  /// Checks that every real file is the simulated one.
  func checkIsFaithful() throws {
    for name in try names where !name.hasSuffix("-shm") && !name.hasSuffix("-lock") {
      if try Data(contentsOf: file(name)) != model.contents(of: "/" + name) { note("\(name) is another one") }
    }
    for path in model.paths where !FileManager.default.fileExists(atPath: self.path + path) { note("\(path) is missing") }
    if let first = differences.withLock({ $0.first }) { throw CrashWorkload.Violation("the mirror: \(first)") }
  }
}
