import Foundation
import Subprocess
import Testing

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// The built program weather-spots-page, run as a person runs it.
enum PageProgram {
  /// Beside this test bundle.
  static var file: URL {
    #if os(macOS)
      let folder = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL.deletingLastPathComponent()
      return (folder ?? Bundle.main.bundleURL).appending(path: "weather-spots-page")
    #else
      return Bundle.main.bundleURL.appending(path: "weather-spots-page")
    #endif
  }

  static var executable: Executable { .path(FilePath(file.path)) }

  /// The output and exit code of one run.
  struct Run: Equatable, CustomTestStringConvertible {
    var output = ""
    var errors = ""
    var code: Int32 = 0

    var testDescription: String { "exit code \(code)\n--- output\n\(output)--- errors\n\(errors)" }
  }

  /// Runs the program to its end.
  static func run(_ arguments: [String]) async throws -> Run {
    // Whoever runs the tests may have a configuration of their own.
    let result = try await Subprocess.run(
      executable, arguments: Arguments(arguments),
      environment: .inherit.updating(["XDG_CONFIG_HOME": "/nonexistent", "HOME": "/nonexistent"]), input: .none,
      output: .string(limit: 1 << 24), error: .string(limit: 1 << 20))
    let code: Int32 =
      switch result.terminationStatus {
      case .exited(let code): Int32(code)
      case .signaled(let signal): -Int32(signal)
      }
    return Run(output: result.standardOutput, errors: result.standardError, code: code)
  }
}

/// A directory for one test, removed with it.
final class Workspace: Sendable {
  let directory: URL

  init() throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "weather-spots-page-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  }

  deinit {
    do { try FileManager.default.removeItem(at: directory) } catch { Issue.record(error) }
  }

  func path(_ name: String) -> String { directory.appending(path: name).path }
}
