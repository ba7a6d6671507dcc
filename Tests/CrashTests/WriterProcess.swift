import Foundation
import Testing

/// A running LedgerWriter.
final class WriterProcess {
  private let process = Process()
  private let output = Pipe()
  private let input = Pipe()
  private var unread = Data()

  init(_ arguments: String...) throws {
    // The test bundle and the writer are built into the same directory.
    process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
      .appendingPathComponent("LedgerWriter")
    process.arguments = arguments
    process.standardOutput = output
    process.standardInput = input
    try process.run()
  }

  /// The next line; `nil` when the process is gone and everything was read.
  func nextLine() -> Substring? {
    while true {
      if let end = unread.firstIndex(of: 0x0A) {
        let line = String(decoding: unread[unread.startIndex..<end], as: UTF8.self)
        unread = unread[(end + 1)...]
        return Substring(line)
      }
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { return nil }
      unread.append(more)
    }
  }

  /// Kills it at once; what it had said can still be read.
  func kill() { _ = Foundation.kill(process.processIdentifier, SIGKILL) }

  /// Lets a holding process go on to its end.
  func letGo() throws { try input.fileHandleForWriting.close() }

  func waitUntilExit() { process.waitUntilExit() }
}
