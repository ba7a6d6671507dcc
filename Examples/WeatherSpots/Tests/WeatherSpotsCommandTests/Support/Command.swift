// These tests run the built programs as a person does and compare everything they write.

import Foundation
import Subprocess
import Testing

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// The output and exit code of one run of the program.
struct Run: Equatable, CustomTestStringConvertible {
  var output: String
  var errors = ""
  var code: Int32 = 0

  var testDescription: String { "exit code \(code)\n--- output\n\(output)--- errors\n\(errors)" }
}

/// The folder of the built programs, beside this test bundle.
var buildDirectory: URL {
  #if os(macOS)
    Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL.deletingLastPathComponent() ?? Bundle.main.bundleURL
  #else
    Bundle.main.bundleURL
  #endif
}

/// Runs weather-spots to its end.
func weatherSpots(_ arguments: [String], input: String = "", environment: [String: String] = [:]) async throws -> Run {
  // Whoever runs the tests may have a configuration and a store of their own.
  let all = environment.merging(["XDG_CONFIG_HOME": "/nonexistent", "HOME": "/nonexistent"]) { given, _ in given }
  let updates = Dictionary(uniqueKeysWithValues: all.map { (Environment.Key(stringLiteral: $0), String?.some($1)) })
  let result = try await Subprocess.run(
    .path(FilePath(buildDirectory.appending(path: "weather-spots").path)), arguments: Arguments(arguments),
    environment: .inherit.updating(updates), input: .string(input), output: .string(limit: 1 << 24), error: .string(limit: 1 << 20))
  let code: Int32 =
    switch result.terminationStatus {
    case .exited(let code): Int32(code)
    case .signaled(let signal): -Int32(signal)
    }
  return Run(output: result.standardOutput, errors: result.standardError, code: code)
}

/// A directory for one test, removed with it.
final class Workspace: Sendable {
  let directory: URL

  init() throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "weather-spots-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
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

/// The file of spots that ships with the example.
let shippedSpots = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../spots.csv").standardizedFileURL.path
