// These tests run the built tool as a person does and compare everything it writes.

import Foundation
import Subprocess

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// The output and exit code of one run of the tool; a negative code is a signal.
struct Run: Equatable {
  var output: String
  var errors = ""
  var code: Int32 = 0
}

/// The folder of the built tool, beside this test bundle.
var buildDirectory: URL {
  #if os(macOS)
    Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL.deletingLastPathComponent() ?? Bundle.main.bundleURL
  #else
    Bundle.main.bundleURL
  #endif
}

/// Runs the tool to its end.
func larder(_ arguments: String..., input: String = "") async throws -> Run { try await larder(arguments, input: input) }

/// Runs the tool to its end.
func larder(_ arguments: [String], input: String = "") async throws -> Run {
  let result = try await Subprocess.run(
    .path(FilePath(buildDirectory.appending(path: "larder").path)), arguments: Arguments(arguments), input: .string(input),
    output: .string(limit: 1 << 24), error: .string(limit: 1 << 20))
  let code: Int32 =
    switch result.terminationStatus {
    case .exited(let code): Int32(code)
    case .signaled(let signal): -Int32(signal)
    }
  return Run(output: result.standardOutput, errors: result.standardError, code: code)
}
