import Foundation
import Larder
import LarderSQLite
import Testing

/// The stores in `Fixtures/format-1`, which earlier versions wrote.
enum FormatFixture {
  /// The names of their main files.
  static let names =
    ["clean", "crashed", "crashed-before-a-checkpoint", "torn"].flatMap { ["\($0).json", "\($0).sqlite"] } + ["shared.sqlite"]

  /// Copies a store with its companions, and returns what was read from it when it was made.
  static func copy(_ name: String, to directory: URL) throws -> String {
    let folder = try #require(name.split(separator: ".").first)
    let fixtures = try #require(Bundle.module.resourceURL).appending(path: "Fixtures/format-1/\(folder)")
    for suffix in ["", "-journal", "-wal"] {
      let from = fixtures.appending(path: name + suffix)
      guard FileManager.default.fileExists(atPath: from.path) else { continue }
      try FileManager.default.copyItem(at: from, to: directory.appending(path: name + suffix))
    }
    return try String(contentsOf: fixtures.appending(path: name + ".txt"), encoding: .utf8)
  }

  /// Returns a backend for a copy.
  static func backend(_ file: URL) -> any StorageBackend {
    file.pathExtension == "json" ? JSONFileBackend(file: file) : SQLiteBackend(file: file)
  }
}
