import Foundation

/// A process that serves until it is killed, and that ends with the process of the test, however that ends.
final class ServerProcess {
  // The shell waits for the end of a pipe that only this process holds, and ends after the program; the output ends with the program.
  private static let script = """
    sh -c 'echo $$; exec "$@"' server "$@" &
    exec >/dev/null
    cat
    kill -KILL $! 2>/dev/null
    wait $! 2>/dev/null
    """

  private let process = Process()
  private let (input, output) = (Pipe(), Pipe())
  private var number: Int32 = 0

  /// Starts a program.
  init(_ program: URL, _ arguments: [String]) throws {
    for end in [input.fileHandleForReading, input.fileHandleForWriting] { _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC) }
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", Self.script, "server", program.path] + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(["XDG_CONFIG_HOME": "/nonexistent", "HOME": "/nonexistent"]) { $1 }
    (process.standardInput, process.standardOutput) = (input, output)
    try process.run()
  }

  /// Returns the first line that the program writes.
  func firstLine() async throws -> String {
    let handle = output.fileHandleForReading
    let lines = await withCheckedContinuation { (continuation: CheckedContinuation<[Substring], Never>) in
      Thread.detachNewThread {
        var text = ""
        while text.split(separator: "\n").count < 2 || !text.hasSuffix("\n") {
          let data = handle.availableData
          if data.isEmpty { break }
          text += String(decoding: data, as: UTF8.self)
        }
        continuation.resume(returning: text.split(separator: "\n"))
      }
    }
    number = lines.first.flatMap { Int32($0) } ?? 0
    return lines.dropFirst().first.map(String.init) ?? ""
  }

  /// Kills the program, and returns when it is gone.
  func kill() {
    if number > 0 { Foundation.kill(number, SIGKILL) }
    // The shell then ends, too.
    do { try input.fileHandleForWriting.close() } catch { print("a server's pipe: \(error)") }
    process.waitUntilExit()
  }
}
