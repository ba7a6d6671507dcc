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

  /// A test that fails leaves no process behind.
  deinit { if process.isRunning { kill() } }

  /// The next line; `nil` when the process is gone and everything was read.
  func nextLine() -> Substring? {
    while true {
      if let line = nextReadLine() { return line }
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { return nil }
      unread.append(more)
    }
  }

  /// The lines that it has said by now and that were not read yet.
  func linesSoFar() -> [Substring] {
    var lines: [Substring] = []
    while true {
      while let line = nextReadLine() { lines.append(line) }
      var descriptor = pollfd(fd: output.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&descriptor, 1, 0) > 0 else { return lines }
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { return lines }
      unread.append(more)
    }
  }

  private func nextReadLine() -> Substring? {
    guard let end = unread.firstIndex(of: 0x0A) else { return nil }
    let line = String(decoding: unread[unread.startIndex..<end], as: UTF8.self)
    unread = unread[(end + 1)...]
    return Substring(line)
  }

  /// Kills it at once; what it had said can still be read.
  func kill() { _ = Foundation.kill(process.processIdentifier, SIGKILL) }

  /// Kills it after so many lines and then so much time, and waits until it is gone.
  ///
  /// - Parameter beginning: With what the last of the lines must begin: it waits for the next one that does.
  /// - Returns: All that it has said and that was not read before.
  func linesUntilKilled(after count: Int, beginning: String = "", and pause: Duration) -> [Substring] {
    var lines: [Substring] = []
    while let line = isReached(lines, count, beginning) ? nil : nextLine() { lines.append(line) }
    // Not always right behind a line. It looks at the clock until then, because a sleep would be longer than most of these pauses.
    let moment = ContinuousClock.now + pause
    while ContinuousClock.now < moment {}
    kill()
    while let line = nextLine() { lines.append(line) }
    waitUntilExit()
    return lines
  }

  /// Whether it has said enough, or that it cannot go on.
  private func isReached(_ lines: [Substring], _ count: Int, _ beginning: String) -> Bool {
    guard let last = lines.last else { return count == 0 }
    return lines.count >= count && last.hasPrefix(beginning) || last.hasPrefix("failed") || last.hasPrefix("refused")
  }

  /// Lets a holding process go on to its end.
  func letGo() throws { try input.fileHandleForWriting.close() }

  func waitUntilExit() { process.waitUntilExit() }
}
