import Dispatch
import Foundation
import Subprocess
import Testing

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// Returns what weather-spots writes to a terminal, until a text is there.
func onATerminal(_ arguments: [String], _ environment: [Environment.Key: String?] = [:], until end: String) async throws -> String {
  let terminal = try Terminal()
  async let text = terminal.read(until: end)
  let result = try await Subprocess.run(
    .built("weather-spots"), arguments: Arguments(arguments),
    environment: .inherit.updating(["TERM": "xterm", "NO_COLOR": nil, "COLUMNS": nil].merging(environment) { $1 }), input: .none,
    output: .fileDescriptor(terminal.programSide, closeAfterSpawningProcess: true), error: .discarded)
  #expect(result.terminationStatus == .exited(0))
  return try await text
}

/// A terminal without a screen: what a program writes to its one side is read from the other.
final class Terminal: Sendable {
  /// The end of the terminal that the program gets as its standard output.
  let programSide: FileDescriptor
  private let side: FileDescriptor

  init() throws {
    var (mine, programs): (Int32, Int32) = (-1, -1)
    guard openpty(&mine, &programs, nil, nil, nil) == 0 else { throw Errno(rawValue: errno) }
    side = FileDescriptor(rawValue: mine)
    programSide = FileDescriptor(rawValue: programs)
  }

  deinit { _ = close(side.rawValue) }

  /// Reads until the text is there, and returns everything up to it and what came with it.
  func read(until end: String) async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { [side] in
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        let end = Array(end.utf8)
        do {
          while !bytes.contains(end) {
            let count = try buffer.withUnsafeMutableBytes { try side.read(into: $0) }
            guard count > 0 else { throw Errno.ioError }
            bytes += buffer[..<count]
          }
          continuation.resume(returning: String(decoding: bytes, as: UTF8.self))
        } catch { continuation.resume(throwing: error) }
      }
    }
  }
}
