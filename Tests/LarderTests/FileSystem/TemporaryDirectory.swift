import Foundation

/// A directory of a test's own, removed with the value.
final class TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    // Resolved, because the temporary directory is a symbolic link on some systems and the tests compare paths.
    let base = FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
    path = base + "/larder-tests-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { path + "/" + name }

  /// The descriptors of this process that refer to something in the directory, removed files included (Linux).
  func descriptors() throws -> [Int32] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { name in
      // Other tests close descriptors meanwhile: one that is gone is not ours.
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name)
      return target.map { $0.hasPrefix(path) } ?? false
    }.compactMap { Int32($0) }
  }
}
