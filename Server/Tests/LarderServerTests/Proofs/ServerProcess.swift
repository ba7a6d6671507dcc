import Foundation
import LarderSync
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// A `larder-server` in a process of its own, which ends with the process of the tests at the latest.
final class ServerProcess: Sendable {
  let process: Process
  let port: Int
  private let log: String
  private let directory: TemporaryDirectory

  var url: String { "http://127.0.0.1:\(port)" }
  /// What the server has logged.
  var logged: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }

  private init(_ process: Process, _ port: Int, _ log: String, _ directory: TemporaryDirectory) {
    (self.process, self.port, self.log, self.directory) = (process, port, log, directory)
  }

  /// Starts a server, and returns when it takes requests.
  ///
  /// - Parameter store: The URI, which goes by the environment, where nobody reads a password.
  static func start(_ store: String, _ arguments: [String] = []) async throws -> ServerProcess {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try startBlocking(store, arguments) }) }
    }
  }

  private static func startBlocking(_ store: String, _ arguments: [String]) throws -> ServerProcess {
    let directory = try TemporaryDirectory()
    let (process, output, log) = (Process(), Pipe(), directory.file("log"))
    _ = FileManager.default.createFile(atPath: log, contents: nil)
    process.executableURL = URL(fileURLWithPath: BuiltPrograms.larderServer)
    process.arguments = ["serve", "--port", "0", "--insecure-no-auth", "--rate", "1000000", "--burst", "1000000"] + arguments
    process.environment = environment(store)
    (process.standardInput, process.standardOutput) = (FileHandle.nullDevice, output)
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
    try process.run()
    ServerKeeper.shared.note("+", process.processIdentifier)
    // The one line of stdout comes when the server takes requests.
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    let server = ServerProcess(
      process, Int(line.split(separator: ":").last.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) } ?? "") ?? 0, log, directory)
    if server.port == 0 { throw ServerFailure(said: server.logged) }
    return server
  }

  /// Runs a command of `larder-server` to its end, and returns what it printed.
  static func run(_ store: String, _ arguments: [String]) async throws -> String {
    let environment = environment(store)
    return try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(
          with: Result {
            let (process, output) = (Process(), Pipe())
            process.executableURL = URL(fileURLWithPath: BuiltPrograms.larderServer)
            process.arguments = arguments
            process.environment = environment
            (process.standardInput, process.standardOutput, process.standardError) = (FileHandle.nullDevice, output, output)
            try process.run()
            let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit()
            if process.terminationStatus != 0 { throw ServerFailure(said: text) }
            return text
          })
      }
    }
  }

  private static func environment(_ store: String) -> [String: String] {
    var environment = ProcessInfo.processInfo.environment
    environment["LARDER_SERVER_STORE"] = store
    return environment
  }

  /// A way to the server for a device, which has no token.
  func transport(timeout: Duration = .seconds(60)) throws -> HTTPTransport {
    guard let url = URL(string: url) else { throw URLError(.badURL) }
    return HTTPTransport(url, timeout: timeout) { nil }
  }

  /// Ends the server: as it is meant to end, or as nothing can defend itself against.
  func end(_ signal: Int32 = SIGTERM) async {
    _ = kill(process.processIdentifier, signal)
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { [process] in
        process.waitUntilExit()
        continuation.resume()
      }
    }
    ServerKeeper.shared.note("-", process.processIdentifier)
  }
}

/// A server that did not start, or a command that failed.
struct ServerFailure: Error, CustomStringConvertible {
  var said: String
  var description: String { "larder-server failed: \(said)" }
}

/// A process that kills the servers which are left when the process of the tests is gone.
final class ServerKeeper: Sendable {
  static let shared = ServerKeeper()
  private let pipe = Pipe()
  private let lock = Mutex(())

  private static let script = """
    trap '' HUP INT QUIT TERM
    pids=
    while read -r sign pid; do
      if [ "$sign" = + ]; then pids="$pids $pid"; else pids=$(printf '%s\\n' $pids | grep -vx "$pid"); fi
    done
    for pid in $pids; do
      if [ "$(cat "/proc/$pid/comm")" = larder-server ]; then kill -KILL "$pid"; fi
    done
    """

  private init() {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", Self.script]
    (process.standardInput, process.standardOutput, process.standardError) = (pipe, FileHandle.nullDevice, FileHandle.nullDevice)
    try? process.run()
    pipe.keepToThisProcess()
  }

  func note(_ sign: String, _ pid: Int32) {
    lock.withLock { _ in try? pipe.fileHandleForWriting.write(contentsOf: Data("\(sign) \(pid)\n".utf8)) }
  }
}
