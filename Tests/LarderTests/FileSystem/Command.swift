import Foundation

/// A second program: run to its end, or kept running until it is told to stop.
final class Command {
  struct Result {
    let status: Int32
    let output: String
  }

  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  /// Starts a program, and returns when it has written its first output.
  init(_ path: String, _ arguments: [String]) throws {
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  deinit { if process.isRunning { kill() } }

  var identifier: Int32 { process.processIdentifier }

  /// Waits for the next output.
  func nextOutput() -> String { String(decoding: output.fileHandleForReading.availableData, as: UTF8.self) }

  /// Kills it as a crash would, and waits for the end.
  func kill() {
    Foundation.kill(process.processIdentifier, SIGKILL)
    // What it started itself may go on, and Foundation waits for that too: it is told that its input has ended.
    input.fileHandleForWriting.closeFile()
    process.waitUntilExit()
  }

  static func run(_ path: String, _ arguments: [String]) throws -> Result {
    let command = try Command(path, arguments)
    try command.input.fileHandleForWriting.close()
    let output = command.output.fileHandleForReading.readDataToEndOfFile()
    command.process.waitUntilExit()
    return Result(status: command.process.terminationStatus, output: String(decoding: output, as: UTF8.self))
  }
}
