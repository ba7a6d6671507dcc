import Foundation

/// The writer, from outside.
final class WriterProcess {
  private let process = Process()
  private let orders = Pipe()
  private let answers = Pipe()
  private var rest = ""

  init(_ row: Row, _ directory: URL, seed: UInt64) throws {
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    process.arguments = ["write", row.rawValue, directory.path, String(seed)]
    process.standardInput = orders
    process.standardOutput = answers
    try process.run()
    let descriptor = answers.fileHandleForReading.fileDescriptor
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
  }

  func send(_ order: String) throws { try orders.fileHandleForWriting.write(contentsOf: Data((order + "\n").utf8)) }

  /// Waits until the writer says something or another descriptor is readable.
  func wait(or other: Int32) throws {
    var descriptors = [answers.fileHandleForReading.fileDescriptor, other].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    if poll(&descriptors, 2, 120_000) == 0 { throw Failure("the writer hangs") }
  }

  /// Returns the whole lines that were said by now.
  func lines() throws -> [String] {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Foundation.read(answers.fileHandleForReading.fileDescriptor, &buffer, buffer.count)
      if count == 0 { throw Failure("the writer has ended") }
      if count < 0 { break }
      rest += String(decoding: buffer[..<count], as: UTF8.self)
    }
    var lines = rest.components(separatedBy: "\n")
    rest = lines.removeLast()
    return lines
  }

  /// Has it close its store and end.
  func finish() throws {
    try orders.fileHandleForWriting.close()
    process.waitUntilExit()
    if process.terminationStatus != 0 { throw Failure("the writer ends with \(process.terminationStatus)") }
  }
}
