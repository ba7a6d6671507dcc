import Foundation

/// A new directory for one test, removed with the value.
final class TemporaryDirectory: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    do { try FileManager.default.removeItem(at: url) } catch { return }  // what is left is the system's to clean
  }

  func file(_ name: String) -> URL { url.appending(path: name, directoryHint: .notDirectory) }
}
