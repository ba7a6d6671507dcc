internal import Foundation

/// Moves the files of a damaged cache out of the way.
struct CacheHealing: Sendable {
  private let directory: String
  private let name: String
  private let fileSystem: any FileSystem
  private static let suffix = "-damaged"
  /// What the names of the files beside a store end in; anything else there is somebody else's.
  private static let beside = ["-journal", "-previous", "-shm", "-wal"]

  init(file: URL, fileSystem: any FileSystem) {
    let url = file.standardizedFileURL
    directory = url.deletingLastPathComponent().path
    name = url.lastPathComponent
    self.fileSystem = fileSystem
  }

  /// Whether an error means that a cache is better begun anew.
  static func mayHeal(_ error: RepositoryError) -> Bool {
    error.code == .corrupted || error.code == .dataMissing
  }

  /// Keeps other processes from healing the same file.
  func lock() throws(RepositoryError) -> any HeldLock { try fileSystem.lock(path(name + "-healing-lock")) }

  /// Renames the main file and those beside it, and returns their new paths.
  ///
  /// The main file goes last: a crash before that leaves a store that is still found damaged, and healed by the next open.
  func moveAside() throws(RepositoryError) -> [String] {
    let entries = try fileSystem.entries(of: directory) ?? []
    var moved: [String] = []
    for entry in Self.beside.map({ name + $0 }) + [name] where entries.contains(entry) {
      let target = path(entry + Self.suffix)
      try fileSystem.rename(path(entry), to: target)
      moved.append(target)
    }
    try fileSystem.syncDirectory(directory)
    return moved
  }

  private func path(_ entry: String) -> String { directory + "/" + entry }
}
