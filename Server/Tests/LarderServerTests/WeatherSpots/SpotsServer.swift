import Foundation
import Synchronization
import Testing

#if canImport(Glibc)
  import Glibc
#endif

/// A `larder-server` in a process of its own, which can be killed and comes back under the same address.
final class SpotsServer: Sendable {
  let port: Int
  private let store: String
  private let arguments: [String]
  private let process: Mutex<ServerProcess>

  var url: String { "http://127.0.0.1:\(port)" }

  private init(_ store: String, _ arguments: [String], _ process: ServerProcess) {
    (self.store, self.arguments, port) = (store, arguments, process.port)
    self.process = Mutex(process)
  }

  /// Runs a server while a test uses it, and then has the server's own check look at its store.
  ///
  /// - Parameter arguments: Options of `serve` beside those of all tests.
  static func run(
    in directory: TemporaryDirectory, _ arguments: [String] = [], _ test: (SpotsServer) async throws -> Void
  ) async throws {
    let store = "sqlite:\(directory.file("server.sqlite"))"
    let server = SpotsServer(store, arguments, try await ServerProcess.start(store, arguments, port: LoopbackPort.free()))
    let result: Result<Void, any Error>
    do {
      try await test(server)
      result = .success(())
    } catch { result = .failure(error) }
    let code = await server.process.withLock { $0 }.end()
    #expect(code == 0)
    try result.get()
    // It throws where the check has found something.
    _ = try await ServerProcess.run(store, ["doctor"])
  }

  /// Kills the process, and starts another one.
  func killAndRestart() async throws {
    await process.withLock { $0 }.end(SIGKILL)
    let new = try await ServerProcess.start(store, arguments, port: port)
    process.withLock { $0 = new }
  }
}
