import Foundation
import Testing

/// A directory for one test, removed with it.
final class Workspace: Sendable {
  let directory: URL

  init() {
    directory = FileManager.default.temporaryDirectory.appending(path: "weather-spots-\(UUID().uuidString)")
    do { try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true) } catch { Issue.record(error) }
  }

  deinit {
    do { try FileManager.default.removeItem(at: directory) } catch { Issue.record(error) }
  }

  func path(_ name: String) -> String { directory.appending(path: name).path }

  /// Writes a file and returns its path.
  func file(_ name: String, _ text: String) throws -> String {
    try Data(text.utf8).write(to: directory.appending(path: name))  // a test's input
    return path(name)
  }

  func text(_ name: String) throws -> String { String(decoding: try Data(contentsOf: directory.appending(path: name)), as: UTF8.self) }
}

/// Yields until the condition holds.
///
/// - Throws: `CancellationError` when the test runs out of time.
func until(_ condition: () -> Bool) async throws {
  while !condition() {
    try Task.checkCancellation()
    await Task.yield()
  }
}
