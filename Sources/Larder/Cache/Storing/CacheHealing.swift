internal import Foundation

/// Moves the files of a damaged cache out of the way.
struct CacheHealing: Sendable {
  private let paths: JSONFilePaths
  private let fileSystem: any FileSystem
  private static let suffix = "-damaged"
  /// The endings of the names of the files beside a store, besides those of quarantine files; anything else there is not the store's.
  private static let beside = ["-journal", "-previous", "-shm", "-wal"]

  init(file: URL, fileSystem: any FileSystem) {
    paths = JSONFilePaths(file)
    self.fileSystem = fileSystem
  }

  /// Returns whether an error means that a cache is better begun anew.
  static func mayHeal(_ error: RepositoryError) -> Bool {
    error.code == .corrupted || error.code == .dataMissing
  }

  /// Locks the file against healing by another process.
  func lock() throws(RepositoryError) -> any HeldLock { try fileSystem.lock(paths.mainFile + "-healing-lock") }

  /// Renames the main file and those beside it, and returns their new paths.
  ///
  /// The main file goes first, so that after a crash between two of them the next open finds it missing, and heals the rest. Quarantine
  /// files go too: beside them a missing main file is never taken for a new store.
  func moveAside() throws(RepositoryError) -> [String] {
    let entries = try fileSystem.entries(of: paths.directory) ?? []
    let names = [paths.name] + Self.beside.map { paths.name + $0 }
    var moved: [String] = []
    for entry in names.filter(entries.contains) + entries.filter(paths.isQuarantine).sorted() {
      let target = paths.path(of: entry + Self.suffix)
      try fileSystem.rename(paths.path(of: entry), to: target)
      moved.append(target)
    }
    try fileSystem.syncDirectory(paths.directory)
    return moved
  }
}
