import Foundation
import Subprocess

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// An end that comes to the tool in the middle of its work.
enum Interruption: CaseIterable {
  /// The system kills a process that writes a file beyond this many blocks of 1 KiB: at the same place in every run.
  case fileSize(Int)
  /// `timeout` kills it after so many milliseconds, wherever it is then.
  case time(Int)

  /// Some moments, or with `LARDER_TORTURE` many.
  static var allCases: [Interruption] {
    guard ProcessInfo.processInfo.environment["LARDER_TORTURE"] != nil else {
      return [.fileSize(0), .fileSize(12), .fileSize(64), .time(15)]
    }
    return [0, 1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128].map { .fileSize($0) } + [4, 8, 12, 16, 20, 25, 30, 40, 60, 90].map { .time($0) }
  }

  /// Runs the tool until it ends or is ended.
  func run(_ arguments: [String]) async throws -> Int32 {
    let tool = buildDirectory.appending(path: "larder").path
    let script =
      switch self {
      case .fileSize(let blocks): "ulimit -c 0; ulimit -f \(blocks); exec \"$0\" \"$@\""
      case .time(let time): "exec timeout -s KILL \(Double(time) / 1_000) \"$0\" \"$@\""
      }
    let result = try await Subprocess.run(
      .path("/bin/bash"), arguments: Arguments(["-c", script, tool] + arguments), output: .discarded, error: .discarded)
    return switch result.terminationStatus {
    case .exited(let code): Int32(code)
    case .signaled(let signal): -Int32(signal)
    }
  }
}
