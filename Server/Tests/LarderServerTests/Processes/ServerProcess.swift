import Foundation
import LarderSync

#if canImport(Glibc)
  import Glibc
#endif

/// A `larder-server` in a process of its own, which ends with the process of the tests at the latest.
final class ServerProcess: Sendable {
  let process: ChildProcess
  let port: Int
  private let log: String
  private let directory: TemporaryDirectory

  var url: String { "http://127.0.0.1:\(port)" }
  /// What the server has logged.
  var logged: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }

  private init(_ process: ChildProcess, _ port: Int, _ log: String, _ directory: TemporaryDirectory) {
    (self.process, self.port, self.log, self.directory) = (process, port, log, directory)
  }

  /// Starts a server, and returns when it takes requests.
  ///
  /// - Parameter store: The URI, which goes by the environment, where nobody reads a password.
  static func start(_ store: String, _ arguments: [String] = [], port: Int = 0) async throws -> ServerProcess {
    let (directory, output) = (try TemporaryDirectory(), try LinePipe())
    let log = directory.file("log")
    let errors = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    defer { close(errors) }
    let process = try ChildProcess(
      BuiltPrograms.larderServer,
      ["serve", "--port", "\(port)", "--insecure-no-auth", "--rate", "1000000", "--burst", "1000000"] + arguments,
      environment: ["LARDER_SERVER_STORE": store], output: output.input, errors: errors)
    close(output.input)
    ServerKeeper.shared.note("+", process.id)
    // The one line of stdout comes when the server takes requests.
    let line = await output.lines.first { _ in true }
    let server = ServerProcess(process, line?.text.split(separator: ":").last.flatMap { Int($0) } ?? 0, log, directory)
    if server.port == 0 { throw ServerFailure(said: server.logged) }
    return server
  }

  /// Runs a command of `larder-server` to its end, and returns what it printed.
  static func run(_ store: String, _ arguments: [String]) async throws -> String {
    let output = try LinePipe()
    let process = try ChildProcess(
      BuiltPrograms.larderServer, arguments, environment: ["LARDER_SERVER_STORE": store], output: output.input, errors: output.input)
    close(output.input)
    let text = await output.text()
    if await process.end() != 0 { throw ServerFailure(said: text) }
    return text
  }

  /// A way to the server for a device, which has no token.
  func transport(timeout: Duration = .seconds(60)) throws -> HTTPTransport {
    guard let url = URL(string: url) else { throw URLError(.badURL) }
    return HTTPTransport(url, timeout: timeout) { nil }
  }

  /// Ends the server: as it is meant to end, or as nothing can defend itself against.
  /// - Returns: As ``ChildProcess/end()``.
  @discardableResult
  func end(_ signal: Int32 = SIGTERM) async -> Int32 {
    process.send(signal)
    let status = await process.end()
    ServerKeeper.shared.note("-", process.id)
    return status
  }
}

/// A server that did not start, or a command that failed.
struct ServerFailure: Error, CustomStringConvertible {
  var said: String
  var description: String { "larder-server failed: \(said)" }
}
