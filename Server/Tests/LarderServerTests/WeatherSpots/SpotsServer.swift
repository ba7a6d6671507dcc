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
  private let process: Mutex<ChildProcess>

  var url: String { "http://127.0.0.1:\(port)" }

  private init(_ store: String, _ port: Int, _ process: ChildProcess) {
    (self.store, self.port) = (store, port)
    self.process = Mutex(process)
  }

  /// Runs a server while a test uses it, and then has the server's own check look at its store.
  static func run(in directory: TemporaryDirectory, _ test: (SpotsServer) async throws -> Void) async throws {
    let store = directory.file("server.sqlite")
    let (process, port) = try await start(store, port: 0)
    let server = SpotsServer(store, port, process)
    let result: Result<Void, any Error>
    do {
      try await test(server)
      result = .success(())
    } catch { result = .failure(error) }
    server.process.withLock { $0 }.send(SIGTERM)
    let code = await server.process.withLock { $0 }.end()
    #expect(code == 0)
    try result.get()
    let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
    defer { close(null) }
    let doctor = try ChildProcess(
      BuiltPrograms.larderServer, ["doctor", "--store", "sqlite:\(store)"], output: null, errors: null)
    let verdict = await doctor.end()
    #expect(verdict == 0, "larder-server doctor has found something")
  }

  /// Kills the process, and starts another one.
  func killAndRestart() async throws {
    let old = process.withLock { $0 }
    old.send(SIGKILL)
    _ = await old.end()
    let (new, _) = try await Self.start(store, port: port)
    process.withLock { $0 = new }
  }

  private static func start(_ store: String, port: Int) async throws -> (ChildProcess, Int) {
    let pipe = try LinePipe()
    let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
    let process = try ChildProcess(
      BuiltPrograms.larderServer,
      ["serve", "--store", "sqlite:\(store)", "--port", "\(port)", "--insecure-no-auth", "--rate", "1000000", "--burst", "1000000"],
      output: pipe.input, errors: null)
    close(pipe.input)
    close(null)
    // The one line of stdout comes when the server takes requests.
    let line = await pipe.lines.first { _ in true }
    let found = line.flatMap { $0.text.split(separator: ":").last }.flatMap { Int($0) }
    return (process, try #require(found, "the server has not started"))
  }
}
