package import Foundation

/// A directory of a test's own, removed with the value.
package final class TemporaryDirectory: Sendable {
  package let url: URL
  package var path: String { url.path }

  package init() throws {
    // Resolved, because the temporary directory is a symbolic link on some systems and the tests compare paths.
    url = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
      .appendingPathComponent("larder-tests-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  package func file(_ name: String) -> URL { url.appendingPathComponent(name, isDirectory: false) }
  package func pathOfFile(_ name: String) -> String { file(name).path }

  /// The names of the files in it, sorted.
  package var names: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() } }

  /// A copy of its files as they are now: what a process that is killed now leaves behind.
  package func copy(except name: String? = nil) throws -> TemporaryDirectory {
    let copy = try TemporaryDirectory()
    for entry in try names where entry != name { try FileManager.default.copyItem(at: file(entry), to: copy.file(entry)) }
    return copy
  }

  /// How many descriptors of this process refer to something in the directory, removed files included (Linux).
  package func openDescriptors() throws -> Int { try descriptors().count }

  /// The descriptors of this process that refer to something in the directory, removed files included (Linux).
  package func descriptors() throws -> [Int32] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { name in
      // Other tests close descriptors meanwhile: one that is gone is not ours.
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name)
      return target.map { $0.hasPrefix(path) } ?? false
    }.compactMap { Int32($0) }
  }
}
