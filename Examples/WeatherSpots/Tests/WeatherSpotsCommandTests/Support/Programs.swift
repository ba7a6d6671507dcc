// This file has what the tests of both command line programs need to run a program: the package of the page links to it.

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

  /// A run with one line on standard error and nothing else.
  static func failure(_ message: String, _ code: Int32) -> Run { Run(output: "", errors: "weather-spots: \(message)\n", code: code) }

  /// The beginning of each line, up to the second column.
  var names: [String] { output.split(separator: "\n").map { $0.components(separatedBy: "  ")[0] } }

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

extension Executable {
  static let shell = Executable.path("/bin/sh")

  static func built(_ name: String) -> Executable { .path(FilePath(buildDirectory.appending(path: name).path)) }
}

extension Environment {
  static func inherit(with texts: [String: String]) -> Environment {
    .inherit.updating(Dictionary(uniqueKeysWithValues: texts.map { (Environment.Key(stringLiteral: $0), String?.some($1)) }))
  }
}

/// Runs a built program to its end.
func run(_ program: String, _ arguments: [String], input: String = "", environment: [String: String] = [:]) async throws -> Run {
  // Whoever runs the tests may have a configuration and a store of their own.
  let all = environment.merging(["XDG_CONFIG_HOME": "/nonexistent", "HOME": "/nonexistent"]) { given, _ in given }
  let result = try await Subprocess.run(
    .built(program), arguments: Arguments(arguments),
    environment: .inherit(with: all), input: .string(input), output: .string(limit: 1 << 24), error: .string(limit: 1 << 20))
  let code: Int32 =
    switch result.terminationStatus {
    case .exited(let code): Int32(code)
    case .signaled(let signal): -Int32(signal)
    }
  return Run(output: result.standardOutput, errors: result.standardError, code: code)
}
