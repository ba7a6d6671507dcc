import Foundation

/// A directory of a test's own, which is gone when the test is.
final class TemporaryDirectory: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func file(_ name: String) -> URL { url.appendingPathComponent(name, isDirectory: false) }

  /// A copy of its files as they are now: what a process that is killed now leaves behind.
  func copy(except name: String? = nil) throws -> TemporaryDirectory {
    let copy = try TemporaryDirectory()
    for entry in try names where entry != name { try FileManager.default.copyItem(at: file(entry), to: copy.file(entry)) }
    return copy
  }

  /// The names of the files in it, sorted.
  var names: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: url.path).sorted() } }
}
