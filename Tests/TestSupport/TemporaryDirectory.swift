package import Foundation

/// A directory of a test's own, removed with the value.
package final class TemporaryDirectory: Sendable {
  package let url: URL
  package var path: String { url.path }

  /// Makes a directory.
  ///
  /// - Parameter isInMemory: Whether its files are kept in memory, where the system has such a place: for tests that make thousands of them.
  package init(inMemory isInMemory: Bool = false) throws {
    // Resolved, because the temporary directory is a symbolic link on some systems and the tests compare paths.
    let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
    let isThere = isInMemory && FileManager.default.isWritableFile(atPath: memory.path)
    url = (isThere ? memory : FileManager.default.temporaryDirectory.resolvingSymlinksInPath())
      .appendingPathComponent("larder-tests-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  package func file(_ name: String) -> URL { url.appendingPathComponent(name, isDirectory: false) }
  package func pathOfFile(_ name: String) -> String { file(name).path }

  /// The names of the files in it, sorted.
  package var names: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: path).sorted() } }

  /// Reads all files in the directory, by name.
  package func contents() throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for name in try names { contents[name] = try Data(contentsOf: file(name)) }
    return contents
  }

  /// Makes the directory hold these files, and no others.
  package func replace(with contents: [String: Data]) throws {
    for name in try names { try FileManager.default.removeItem(at: file(name)) }
    for (name, data) in contents { try data.write(to: file(name)) }
  }

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
