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

  /// How many descriptors of this process refer to something in the directory, removed files included (Linux).
  func openDescriptors() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { name in
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name)
      return target.map { $0.hasPrefix(path) } ?? false
    }
  }
}
