import Foundation
import LarderToolKit

/// The stores that the repository keeps: of every released format, as clean and as killed processes left them.
enum Fixtures {
  private static let root = URL(filePath: #filePath).appending(path: "../../../../..").standardizedFileURL

  /// The main files of all of them.
  static let mainFiles: [URL] = {
    let folders = [
      "Tests/LarderSQLiteTests/Fixtures/format-1", "Examples/WeatherSpots/Tests/WeatherSpotsCommandTests/Fixtures", "Tool/Tests/Fixtures",
    ]
    return folders.flatMap { folder in
      FileManager.default.enumerator(at: root.appending(path: folder), includingPropertiesForKeys: nil)?
        .compactMap { $0 as? URL }.filter { ["json", "sqlite"].contains($0.pathExtension) } ?? []
    }.sorted { $0.path < $1.path }
  }()

  /// Copies a fixture with the files beside it, and returns the path of the main file.
  static func copy(_ mainFile: URL, to workspace: Workspace) throws -> String {
    let folder = mainFile.deletingLastPathComponent()
    let name = mainFile.lastPathComponent
    for entry in try FileManager.default.contentsOfDirectory(atPath: folder.path) where entry == name || entry.hasPrefix(name + "-") {
      try FileManager.default.copyItem(at: folder.appending(path: entry), to: workspace.url(entry))
    }
    return workspace.path(name)
  }
}

/// The files of a directory as they are: names, bytes, modes and times.
struct DirectoryState: Equatable {
  private struct Entry: Equatable {
    let bytes: Data
    let mode: UInt32
    let seconds, nanoseconds: Int
  }
  private var entries: [String: Entry] = [:]

  /// Looks at a directory.
  init(_ workspace: Workspace) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: workspace.directory.path) {
      var status = stat()
      guard lstat(workspace.path(name), &status) == 0 else { continue }
      #if canImport(Darwin)
        let time = status.st_mtimespec
      #else
        let time = status.st_mtim
      #endif
      entries[name] = Entry(
        // A pipe would wait for a writer.
        bytes: status.st_mode & S_IFMT == S_IFREG ? try Data(contentsOf: workspace.url(name)) : Data(), mode: UInt32(status.st_mode),
        seconds: time.tv_sec, nanoseconds: time.tv_nsec)
    }
  }
}
